/* Symbols of the running kernel in a file: what is in it is found as in the list itself, and whatever is not trusted is no cache. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/symbols/kernel-cache.h"

#define BASE UINT64_C(0xffffffff81000000)
#define BOOT_AT 8 /* bytes: of the boot id in the file */

static char folder[64], file[128];

static int set_up(void **state) {
        (void)state;
        strcpy(folder, "/tmp/test-kernel-cache.XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        strcat(folder, "/perfd");
        (void)snprintf(file, sizeof(file), "%s/kernel-symbols", folder);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        (void)unlink(file);
        (void)rmdir(folder);
        *strrchr(folder, '/') = '\0';
        return rmdir(folder);
}

static void add(SymbolTable *t, KernelRange *range, uint64_t address, const char *name, bool is_kernel) {
        assert_int_equal(symbol_table_add(t, address, 0, name, strlen(name), (unsigned)t->n), 0);
        kernel_range_add(range, address, is_kernel);
}

/* As /proc/kallsyms has it: several names at one address, a gap, one of C++, and a module. */
static void fill(SymbolTable *t, KernelRange *range) {
        *range = (KernelRange){ .last = 0 };
        symbol_table_init(t, 1 << 20, false);
        add(t, range, BASE, "_stext", true);
        add(t, range, BASE, "_text", true);
        add(t, range, BASE + 0x100, "vfs_read", true);
        add(t, range, BASE + 0x180, "_ZN4core3fmtE", true);
        add(t, range, BASE + 0x200, "far", true);
        add(t, range, BASE + 0x900000, "_einittext", true);
        add(t, range, BASE + 0x40000000, "in_module", false);
}

static void write_cache(void) {
        KernelRange range;
        SymbolTable t;

        fill(&t, &range);
        assert_int_equal(symbol_table_finish(&t, true), 0);
        kernel_cache_write(folder, &t, &range, BASE);
        symbol_table_deinit(&t);
}

static bool is_opened(void) {
        KernelCache c;
        const bool opened = kernel_cache_open(&c, folder);

        assert_int_equal(opened, c.head != NULL);
        kernel_cache_close(&c);
        return opened;
}

static void test_same(void **state) {
        KernelRange range;
        KernelCache c;
        SymbolTable t;
        struct stat status;

        (void)state;
        assert_false(is_opened());
        write_cache();
        assert_int_equal(stat(file, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
        assert_int_equal(stat(folder, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0700);
        assert_true(kernel_cache_open(&c, folder));
        assert_int_equal(kernel_cache_text(&c), BASE);
        fill(&t, &range);
        assert_int_equal(symbol_table_finish(&t, true), 0);
        for (uint64_t at = BASE; at < BASE + 0x20000; at += 0x40) {
                const Symbol *listed = symbol_table_find(&t, at);
                Symbol kept;

                assert_true(kernel_cache_covers(&c, at));
                assert_int_equal(kernel_cache_find(&c, at, &kept), listed != NULL);
                if (!listed)
                        continue;
                assert_string_equal(kept.name, symbol_table_name(&t, (Symbol *)listed).bytes);
                assert_int_equal(kept.start, listed->start);
                assert_int_equal(kept.into, listed->into);
        }
        assert_true(kernel_cache_covers(&c, BASE + 0x8fffff));
        assert_false(kernel_cache_covers(&c, BASE - 1)); /* the last function may end where a module begins: the list is asked */
        assert_false(kernel_cache_covers(&c, BASE + 0x900000));
        assert_false(kernel_cache_covers(&c, BASE + 0x40000000));
        symbol_table_deinit(&t);
        kernel_cache_close(&c);
}

/* Nothing is kept of a list that shows no addresses, has modules among the kernel's functions, or was cut off. */
static void test_not_kept(void **state) {
        KernelRange range;
        SymbolTable t;

        (void)state;
        fill(&t, &range);
        add(&t, &range, BASE + 0x150, "in_between", false);
        assert_int_equal(symbol_table_finish(&t, true), 0);
        kernel_cache_write(folder, &t, &range, BASE);
        assert_false(is_opened());
        symbol_table_deinit(&t);
        fill(&t, &range);
        add(&t, &range, BASE + 0x50000000, "kernel_behind_module", true);
        assert_int_equal(symbol_table_finish(&t, true), 0);
        kernel_cache_write(folder, &t, &range, BASE);
        assert_false(is_opened());
        symbol_table_deinit(&t);
        fill(&t, &range);
        assert_int_equal(symbol_table_finish(&t, true), 0);
        kernel_cache_write(folder, &t, &range, 0);
        assert_false(is_opened());
        t.is_full = true;
        kernel_cache_write(folder, &t, &range, BASE);
        assert_false(is_opened());
        assert_int_equal(access(folder, F_OK), -1);
        symbol_table_deinit(&t);
}

static void put_byte(off_t at, char byte) {
        int fd = open(file, O_WRONLY);

        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
}

/* Of another boot, of another layout, or cut off; what is written anew is trusted again. */
static void test_other_content(void **state) {
        struct stat status;

        (void)state;
        write_cache();
        assert_int_equal(stat(file, &status), 0);
        for (off_t n = 0; n < status.st_size; n++) {
                write_cache();
                assert_true(is_opened());
                assert_int_equal(truncate(file, n), 0);
                assert_false(is_opened());
        }
        write_cache();
        put_byte(BOOT_AT, 'x');
        assert_false(is_opened());
        write_cache();
        put_byte(0, 'x');
        assert_false(is_opened());
        write_cache();
        assert_true(is_opened());
        assert_int_equal(truncate(file, status.st_size + 1), 0);
        assert_false(is_opened());
}

/* Numbers of damaged symbols lead nowhere else. */
static void test_damaged(void **state) {
        struct stat status;

        (void)state;
        write_cache();
        assert_int_equal(stat(file, &status), 0);
        for (off_t at = BOOT_AT + 40; at < status.st_size - 1; at++) {
                KernelCache c;
                Symbol found;

                write_cache();
                put_byte(at, (char)0xff);
                if (!kernel_cache_open(&c, folder))
                        continue;
                for (uint64_t i = BASE; i < BASE + 0x300; i += 8)
                        if (kernel_cache_covers(&c, i) && kernel_cache_find(&c, i, &found))
                                assert_true(strlen(found.name) < (size_t)status.st_size);
                kernel_cache_close(&c);
        }
}

/* What others may write, or may have made. */
static void test_not_own(void **state) {
        char other[160];

        (void)state;
        write_cache();
        assert_int_equal(chmod(file, 0620), 0);
        assert_false(is_opened());
        assert_int_equal(chmod(file, 0602), 0);
        assert_false(is_opened());
        assert_int_equal(chmod(file, 0600), 0);
        assert_true(is_opened());
        assert_int_equal(chmod(folder, 0770), 0);
        assert_false(is_opened());
        assert_int_equal(chmod(folder, 0700), 0);
        (void)snprintf(other, sizeof(other), "%s/other", folder);
        assert_int_equal(rename(file, other), 0);
        assert_int_equal(symlink(other, file), 0);
        assert_false(is_opened());
        assert_int_equal(unlink(other), 0);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(mkfifo(file, 0600), 0);
        assert_false(is_opened());
        if (geteuid() != 0)
                return;
        write_cache(); /* over the FIFO */
        assert_true(is_opened());
        assert_int_equal(chown(file, 1, 0), 0);
        assert_false(is_opened());
        assert_int_equal(chown(file, 0, 0), 0);
        assert_int_equal(chown(folder, 1, 0), 0);
        assert_false(is_opened());
        assert_int_equal(chown(folder, 0, 0), 0);
        assert_true(is_opened());
}

/* A link in the place of the file that is written is not followed. */
static void test_writing(void **state) {
        char new[160], victim[160];
        struct stat status;
        int fd;

        (void)state;
        assert_int_equal(mkdir(folder, 0700), 0);
        (void)snprintf(new, sizeof(new), "%s/kernel-symbols.new", folder);
        (void)snprintf(victim, sizeof(victim), "%s/victim", folder);
        fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_int_equal(write(fd, "12345", 5), 5);
        close(fd);
        assert_int_equal(symlink(victim, new), 0);
        write_cache();
        assert_int_equal(unlink(new), 0);
        assert_int_equal(link(victim, new), 0);
        write_cache();
        assert_false(is_opened());
        assert_int_equal(stat(victim, &status), 0);
        assert_int_equal(status.st_size, 5);
        assert_int_equal(unlink(victim), 0); /* what a writer left that was killed is used again */
        write_cache();
        assert_true(is_opened());
        assert_int_equal(access(new, F_OK), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_same, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_kept, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_other_content, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_own, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_writing, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
