/* Which functions the kernel has once: never one that it has not, or has twice, or that came and went with a module. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/checkpoint.h"
#include "daemon/kernel/symbol/kernel-symbol-index.h"
#include "daemon/kernel/symbol/kernel-symbols.h"

static const char list[] =
        "ffffffff81000100 T vfs_read\n"
        "ffffffff81000200 t twice\n"
        "ffffffff81000300 t twice\n"
        "ffffffff81000400 t lone.isra.0\n"
        "ffffffff82000000 D vfs_data\n"
        "ffffffffc0000000 t mod_open\t[mod]\n"
        "ffffffffc0001000 t bpf_prog_1\t[bpf]\n"
        "nonsense\n"
        "ffffffffc0004000 t last";

static void test_names(void **state) {
        static const char *const others[] = { "twice", "lone", "vfs_data", "bpf_prog_1", "vfs_rea", "vfs_readv", "", "nonsense" };
        KernelSymbolIndex x = KERNEL_SYMBOL_INDEX_NULL;

        assert_false(kernel_symbol_index_has(&x, 7, "vfs_read"));
        assert_int_equal(kernel_symbol_index_add(&x, 7, list, strlen(list), NULL), 0);
        assert_null(x.marks); /* who reads it once pays for nothing else */
        assert_int_equal(kernel_symbol_index_add(&x, 7, list, strlen(list), NULL), 0);
        assert_true(kernel_symbol_index_has(&x, 7, "vfs_read"));
        assert_true(kernel_symbol_index_has(&x, 7, "mod_open"));
        assert_true(kernel_symbol_index_has(&x, 7, "lone.isra.0"));
        assert_true(kernel_symbol_index_has(&x, 7, "last"));
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
                assert_false(kernel_symbol_index_has(&x, 7, others[i]));

        assert_false(kernel_symbol_index_has(&x, 8, "vfs_read")); /* a module has come or gone */
        assert_int_equal(kernel_symbol_index_add(&x, 8, "", 0, NULL), 0);
        assert_false(kernel_symbol_index_has(&x, 8, "vfs_read"));
        assert_false(kernel_symbol_index_has(&x, 7, "vfs_read"));
        kernel_symbol_index_deinit(&x);
        kernel_symbol_index_deinit(&x);
}

/* What is nowhere in the list is known without a look into it; nothing else is. */
static void test_lacks(void **state) {
        static const char *const there[] = { "vfs_read", "twice", "lone", "lone.isra.0", "lone.isra.1", "last" };
        static const char *const missing[] = { "vfs_rea", "vfs_readv", "lon", "vfs_data", "bpf_prog_1", "nonsense" };
        KernelSymbolIndex x = KERNEL_SYMBOL_INDEX_NULL;

        assert_false(kernel_symbol_index_lacks(&x, 7, "vfs_rea"));
        for (int i = 0; i < 2; i++)
                assert_int_equal(kernel_symbol_index_add(&x, 7, list, strlen(list), NULL), 0);
        for (size_t i = 0; i < sizeof(there) / sizeof(*there); i++)
                assert_false(kernel_symbol_index_lacks(&x, 7, there[i]));
        for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
                assert_true(kernel_symbol_index_lacks(&x, 7, missing[i]));
        assert_false(kernel_symbol_index_lacks(&x, 8, "vfs_rea")); /* a module has come or gone */
        kernel_symbol_index_deinit(&x);
}

/* It is read once for an operation, whatever is looked up, and is there as long as somebody has it. */
static void test_list(void **state) {
        char path[] = "/tmp/perfd-kallsyms-XXXXXX";
        int fd = mkstemp(path);
        KernelSymbolIndex x = KERNEL_SYMBOL_INDEX_NULL;
        KernelSymbolList *first, *again, *other;

        assert_int_equal(write(fd, list, strlen(list)), strlen(list));
        assert_int_equal(kernel_symbol_index_list(&x, 7, path, &first, NULL), 0);
        assert_string_equal(first->text, list);
        assert_int_equal(ftruncate(fd, 10), 0);
        assert_int_equal(kernel_symbol_index_list(&x, 7, path, &again, NULL), 0);
        assert_ptr_equal(again, first);
        assert_int_equal(kernel_symbol_index_list(&x, 8, path, &other, NULL), 0); /* a module has come */
        assert_int_equal(other->length, 10);
        kernel_symbol_index_forget(&x);
        assert_null(x.list);
        assert_string_equal(first->text, list);
        kernel_symbol_list_unref(first);
        kernel_symbol_list_unref(again);
        kernel_symbol_list_unref(other);
        assert_int_equal(kernel_symbol_index_list(&x, 7, "/nowhere", &other, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        kernel_symbol_index_deinit(&x);
        assert_int_equal(close(fd), 0);
        assert_int_equal(unlink(path), 0);
}

static int stop(void *userdata, Explanation *e) {
        return ++*(unsigned *)userdata >= 3 ? refuse(e, REFUSED_CANCELLED, "cancelled", "enough") : 0;
}

/* Whoever leaves does not keep main: each look through a long list ends at a checkpoint. */
static void test_checkpoints(void **state) {
        enum { N = 2000000 };
        char *text = malloc((size_t)N * 40), symbol[KERNEL_SYMBOL_SIZE], place[KERNEL_SYMBOL_TEXT_SIZE];
        char *names[] = { (char *)"function_of_none" };
        KernelSymbolIndex x = KERNEL_SYMBOL_INDEX_NULL;
        unsigned n_turns = 0;
        size_t length = 0, hints = 1;

        assert_non_null(text);
        for (unsigned i = 0; i < N; i++)
                length += (size_t)sprintf(text + length, "%016x t function_%u\n", 4096 + 16 * i, i % 500000);
        checkpoint_set(stop, &n_turns);
        assert_int_equal(kernel_symbols_find(text, length, names, 1, &hints, symbol, NULL), REFUSED_CANCELLED);
        n_turns = 0;
        checkpoint_set(stop, &n_turns);
        assert_int_equal(kernel_symbols_check(text, length, NULL, 4096, place, NULL), REFUSED_CANCELLED);
        n_turns = 0;
        checkpoint_set(NULL, NULL);
        assert_int_equal(kernel_symbol_index_add(&x, 0, text, 1000, NULL), 0);
        checkpoint_set(stop, &n_turns);
        assert_int_equal(kernel_symbol_index_add(&x, 0, text, length / 4, NULL), REFUSED_CANCELLED);
        checkpoint_set(NULL, NULL);
        assert_null(x.marks);
        kernel_symbol_index_deinit(&x);
        free(text);
}

/* As many functions as a kernel has: each is found, and nothing else is. */
static void test_many(void **state) {
        enum { N = 200000 };
        KernelSymbolIndex x = KERNEL_SYMBOL_INDEX_NULL;
        char *text = malloc(N * 48), name[32];
        size_t length = 0;

        assert_non_null(text);
        for (unsigned i = 0; i < N; i++)
                length += (size_t)sprintf(text + length, "%016x t function_%u_of_many\n", 4096 + 16 * i, i);
        for (unsigned i = 0; i < 300; i++)
                length += (size_t)sprintf(text + length, "0000000000000001 t everywhere\n");
        assert_int_equal(kernel_symbol_index_add(&x, 0, text, length, NULL), 0);
        assert_int_equal(kernel_symbol_index_add(&x, 0, text, length, NULL), 0);
        assert_true(x.n_marks * sizeof(*x.marks) <= 16 * N);
        for (unsigned i = 0; i < N; i++) {
                (void)sprintf(name, "function_%u_of_many", i);
                assert_true(kernel_symbol_index_has(&x, 0, name));
                (void)sprintf(name, "function_%u_of_none", i);
                assert_false(kernel_symbol_index_has(&x, 0, name));
        }
        assert_false(kernel_symbol_index_has(&x, 0, "everywhere"));
        kernel_symbol_index_deinit(&x);
        free(text);
}

static void put_modules(const char *root, const char *text) {
        char path[128];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/proc/modules", root);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw) {
        return remove(path);
}

static void test_modules(void **state) {
        char root[] = "/tmp/perfd-modules-XXXXXX", path[128], other[128];
        uint64_t none, loaded, reloaded;

        assert_int_equal(kernel_symbol_index_modules("/nowhere"), kernel_symbol_index_modules("/nowhere"));
        assert_non_null(mkdtemp(root));
        for (const char *const *folder = (const char *const[]){ "proc", "sys", "sys/module", "sys/module/ext4", NULL }; *folder;
             folder++) {
                (void)snprintf(path, sizeof(path), "%s/%s", root, *folder);
                assert_int_equal(mkdir(path, 0755), 0);
        }
        put_modules(root, "");
        none = kernel_symbol_index_modules(root);
        put_modules(root, "nf_nat 57344 1 nf_tables,nft_nat, Live 0xffffffffc0a5f000\n");
        loaded = kernel_symbol_index_modules(root);
        assert_int_not_equal(loaded, none);
        put_modules(root, "nf_nat 57344 2 nf_tables, Live 0xffffffffc0a5f000\n"); /* only used by others now */
        assert_int_equal(kernel_symbol_index_modules(root), loaded);
        put_modules(root, "nf_nat 57344 1 nf_tables, Live 0xffffffffc0a60000\n");
        assert_int_not_equal(kernel_symbol_index_modules(root), loaded);
        put_modules(root, "nf_nat 57344 1 nf_tables, Unloading 0xffffffffc0a5f000\n");
        assert_int_not_equal(kernel_symbol_index_modules(root), loaded);

        /* the same name with the same size, where addresses are hidden */
        put_modules(root, "ext4 987136 1 - Live 0x0000000000000000\n");
        loaded = kernel_symbol_index_modules(root);
        (void)snprintf(path, sizeof(path), "%s/sys/module/ext4", root);
        (void)snprintf(other, sizeof(other), "%s/sys/module/new", root);
        assert_int_equal(mkdir(other, 0755), 0);
        assert_int_not_equal(kernel_symbol_index_modules(root), loaded);
        assert_int_equal(rename(other, path), 0); /* another inode */
        reloaded = kernel_symbol_index_modules(root);
        assert_int_not_equal(reloaded, loaded);
        assert_int_equal(kernel_symbol_index_modules(root), reloaded);
        assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_lacks),
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_checkpoints),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_modules),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
