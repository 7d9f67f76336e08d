/* What is at an address of the kernel, of a list as /proc/kallsyms shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/checkpoint.h"
#include "daemon/kernel/symbol/kernel-places.h"
#include "daemon/kernel/symbol/kernel-symbols.h"

static char path[] = "/tmp/test-kernel-places-XXXXXX";

static int read_text(const char *text, KernelPlaces *ret, Explanation *e) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
        return kernel_places_read(path, ret, e);
}

static void check_place(const KernelPlaces *p, uint64_t address, const char *expected) {
        char found[128] = "";
        KernelPlace k;

        if (kernel_places_find(p, address, &k))
                (void)snprintf(found, sizeof(found), "%.*s+%llx/%llx [%.*s]", (int)k.symbol_length, k.symbol, (unsigned long long)k.offset,
                               (unsigned long long)k.size, (int)k.module_length, k.module);
        assert_string_equal(found, expected);
}

/* Modules are not in order, and in front of the kernel; of one address the last function is meant, and never data. */
static void test_find(void **state) {
        static const char list[] = "0000000000000000 A fixed_percpu_data\n"
                                   "ffffffff81000000 T _text\n"
                                   "ffffffff81000000 T _stext\n"
                                   "ffffffff81000000 D __begin\n"
                                   "ffffffff81000100 t vfs_read\n"
                                   "ffffffff81000180 W vfs_write\n"
                                   "ffffffff82000000 D vfs_data\n"
                                   "nonsense\n"
                                   "ffffffff8200000g t bad\n"
                                   "fffffffff82000001 t long\n"
                                   "ffffffff82000010 \n"
                                   "ffffffff82000010 t\n"
                                   "ffffffffc0001000 t mod_open\t[mod]\n"
                                   "ffffffffc0000000 t bpf_prog_1\t[bpf]\n"
                                   "ffffffffc0002000 r mod_data\t[mod]\n"
                                   "ffffffffc0003000 t last";
        KernelPlaces p;

        assert_int_equal(read_text(list, &p, NULL), 0);
        check_place(&p, 0, "");
        check_place(&p, 0xffffffff80ffffff, "");
        check_place(&p, 0xffffffff81000000, "_stext+0/100 []");
        check_place(&p, 0xffffffff810000ff, "_stext+ff/100 []");
        check_place(&p, 0xffffffff81000100, "vfs_read+0/80 []");
        check_place(&p, 0xffffffff810001ff, "vfs_write+7f/fffe80 []");
        check_place(&p, 0xffffffff82000000, "");
        check_place(&p, 0xffffffffbfffffff, "");
        check_place(&p, 0xffffffffc0000fff, "bpf_prog_1+fff/1000 [bpf]");
        check_place(&p, 0xffffffffc0001001, "mod_open+1/1000 [mod]");
        check_place(&p, 0xffffffffc0002000, "");
        check_place(&p, 0xffffffffc0003010, "last+10/0 []");
        check_place(&p, 0xffffffffc0003000 + (1 << 24), ""); /* too far behind the last one */
        check_place(&p, UINT64_MAX, "");
        kernel_places_deinit(&p);
        assert_null(p.text);
}

static void test_hidden(void **state) {
        KernelPlaces p = KERNEL_PLACES_NULL;

        assert_int_equal(read_text("0000000000000000 T _text\n0000000000000000 t vfs_read\n", &p, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_int_equal(read_text("", &p, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_int_equal(kernel_places_read("/nonexistent", &p, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_null(p.text);
}

static int cancel(void *userdata, Explanation *e) {
        return refuse(e, REFUSED_CANCELLED, "x", "x");
}

/* A list of 100,000 lines, turned round: each is found. The client goes away while it is read: nothing is left. */
static void test_large(void **state) {
        const size_t n = 100000;
        char *text = malloc(n * 40), *at = text;
        Explanation e = EXPLANATION_NULL;
        KernelPlaces p = KERNEL_PLACES_NULL;

        assert_non_null(text);
        for (size_t i = n; i-- > 0;)
                at += sprintf(at, "%016zx t f%zu\n", 0xffff000000000000 + i * 16, i);
        assert_int_equal(read_text(text, &p, NULL), 0);
        assert_int_equal(p.n, n);
        for (size_t i = 0; i < n; i++) {
                char expected[64];

                (void)snprintf(expected, sizeof(expected), "f%zu+f/%s []", i, i + 1 < n ? "10" : "0");
                check_place(&p, 0xffff000000000000 + i * 16 + 15, expected);
        }
        kernel_places_deinit(&p);
        checkpoint_set(cancel, NULL);
        while (read_text(text, &p, &e) == 0) /* it is asked each 10 ms of work */
                kernel_places_deinit(&p);
        checkpoint_set(NULL, NULL);
        assert_string_equal(e.reason, "x");
        assert_null(p.text);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_find),
                cmocka_unit_test(test_hidden),
                cmocka_unit_test(test_large),
        };
        const int fd = mkstemp(path);
        int r;

        if (fd < 0)
                return 1;
        close(fd);
        r = cmocka_run_group_tests(tests, NULL, NULL);
        unlink(path);
        return r;
}
