/* The state file: whole or refused, whatever became of it on the disk. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/kernel/host/whole-file.h"

static char folder[] = "/tmp/test-state-file.XXXXXX", path[80];

static int make_folder(void **state) {
        if (!mkdtemp(folder))
                return -1;
        (void)snprintf(path, sizeof(path), "%s/made/events", folder);
        return 0;
}

static int remove_folder(void **state) {
        char command[120];

        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static void put(const char *bytes, size_t n) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(write(fd, bytes, n) == (ssize_t)n);
}

static void test_written_and_read(void **state) {
        uint8_t bytes[256];
        struct stat st;

        assert_int_equal(state_file_read(path, &(uint8_t *){ NULL }, &(size_t){ 0 }, NULL), STATE_FILE_E_MISSING);
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)i;
        for (size_t n = 0; n <= sizeof(bytes); n += 64) {
                _cleanup_free_ uint8_t *found = NULL;
                size_t n_found = 999;

                assert_int_equal(state_file_write(path, bytes, n, NULL), 0); /* the first one makes the folder */
                assert_int_equal(state_file_read(path, &found, &n_found, NULL), 0);
                assert_int_equal(n_found, n);
                assert_memory_equal(found, bytes, n);
        }
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
}

/* Cut at each place, one byte longer, and with other first lines. */
static void test_broken(void **state) {
        static const struct {
                const char *file, *text;
        } cases[] = {
                { "", "is empty, as perfd never writes it" },
                { "perfd events 1 0", "does not begin" },
                { "perfd events 1\n", "does not begin" },
                { "perfd events 1 0 \n", "does not begin" },
                { "perfd events 1 -1\n", "has 0 bytes after its first line" },
                { "perfd events 2 0\n", "is a state file of version 2, and this perfd supports 1" },
                { "perfd events 1 99999999999999999999999999\n", "has 0 bytes" },
                { "perfd events 111111111111111111111111111111111111111111111111111111 0\n", "does not begin" },
        };
        _cleanup_free_ char *whole = NULL;
        size_t length;

        assert_int_equal(state_file_write(path, (const uint8_t *)"abcde", 5, NULL), 0);
        assert_int_equal(whole_file_read(path, &whole, &length), 0);
        assert_string_equal(whole, "perfd events 1 5\nabcde");
        for (size_t n = 0; n <= length + 1; n++) {
                size_t begin = 0;
                int r = state_file_check(path, (const uint8_t *)whole, n, &begin, NULL); /* the next byte is a zero */

                assert_int_equal(r, n == length ? 0 : REFUSED_INVALID);
                assert_int_equal(begin, n == length ? length - 5 : 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint8_t *found = NULL;
                Explanation e;
                size_t n;

                put(cases[i].file, strlen(cases[i].file));
                assert_int_equal(state_file_read(path, &found, &n, &e), REFUSED_INVALID);
                assert_null(found);
                assert_non_null(strstr(e.text, cases[i].text));
                assert_string_equal(e.reason, "state-file");
        }
}

static void test_what_can_not_be_written(void **state) {
        _cleanup_free_ char *whole = NULL, *beside = NULL;
        Explanation e;
        size_t length;

        assert_int_equal(state_file_write(path, (const uint8_t *)"old", 3, NULL), 0);
        assert_true(asprintf(&beside, "%s.new", path) > 0);
        assert_int_equal(mkdir(beside, 0700), 0); /* in the way */
        assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
        assert_non_null(strstr(e.text, "/events.new is a directory"));
        assert_int_equal(whole_file_read(path, &whole, &length), 0);
        assert_string_equal(whole, "perfd events 1 3\nold");
        assert_int_equal(rmdir(beside), 0);
        assert_int_equal(state_file_write("/nonexistent/folder/events", (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
        assert_non_null(strstr(e.text, "/nonexistent/folder: No such file or directory"));
        assert_int_equal(state_file_write("/dev/null/events", (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
        assert_non_null(strstr(e.text, "Not a directory"));
}

static void test_set_aside(void **state) {
        for (int i = 1; i <= 3; i++) {
                _cleanup_free_ char *name = NULL, *expected = NULL;

                put("perfd eve", 9);
                assert_int_equal(state_file_set_aside(path, &name, NULL), 0);
                assert_true(asprintf(&expected, "%s.broken-%d", path, i) > 0);
                assert_string_equal(name, expected);
                assert_int_equal(access(path, F_OK), -1);
                assert_int_equal(access(name, F_OK), 0);
        }
        assert_int_equal(state_file_set_aside(path, &(char *){ NULL }, NULL), REFUSED_DENIED); /* there is none */
}

/* A configuration, or whatever else somebody wrote as `state`: not read, replaced, renamed or removed. */
static void test_file_of_others(void **state) {
        static const char *const files[] = { "\n", "version: 1\n", "perfd event", "perfd eventS 1 0\n", "# perfd events 1 0\n" };
        _cleanup_free_ char *beside = NULL;

        assert_true(asprintf(&beside, "%s.new", path) > 0);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                bool is_cut = strncmp(files[i], "perfd events ", strlen(files[i])) == 0;
                _cleanup_free_ char *name = NULL, *whole = NULL;
                Explanation e = EXPLANATION_NULL;
                size_t length;

                put(files[i], strlen(files[i]));
                assert_int_equal(state_file_read(path, &(uint8_t *){ NULL }, &length, &e), is_cut ? REFUSED_INVALID : REFUSED_DENIED);
                assert_non_null(strstr(e.text, *files[i] == '\0' ? "is empty" : is_cut ? "does not begin like" : "may belong to another program"));
                assert_int_equal(state_file_check_place(path, NULL), is_cut ? 0 : REFUSED_DENIED);
                if (is_cut)
                        continue;
                assert_int_equal(state_file_set_aside(path, &name, &e), REFUSED_DENIED);
                assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
                assert_int_equal(whole_file_read(path, &whole, &length), 0);
                assert_string_equal(whole, files[i]);
                assert_int_equal(rename(path, beside), 0); /* where it would be written first */
                assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, ".new does not begin"));
                assert_int_equal(rename(beside, path), 0);
        }
        assert_int_equal(unlink(path), 0);
}

static const mode_t kinds[] = { S_IFIFO, S_IFSOCK, S_IFLNK, S_IFDIR };
static const char *const kind_names[] = { "a pipe", "a socket", "a symbolic link", "a directory" };

static void make_kind(mode_t kind, const char *at) {
        if (kind == S_IFLNK)
                assert_int_equal(symlink("/dev/null", at), 0);
        else if (kind == S_IFDIR)
                assert_int_equal(mkdir(at, 0700), 0);
        else
                assert_int_equal(mknod(at, kind | 0600, 0), 0);
}

/* Neither opened, so that nobody waits for its other end, nor written over, nor renamed. */
static void test_no_regular_file(void **state) {
        _cleanup_free_ char *beside = NULL, *name = NULL;

        assert_true(asprintf(&beside, "%s.new", path) > 0);
        (void)unlink(path);
        for (size_t i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
                const char *at = i % 2 ? beside : path;
                char expected[120];
                struct stat st;
                Explanation e;

                make_kind(kinds[i / 2], at);
                (void)snprintf(expected, sizeof(expected), "%s is %s, and", at, kind_names[i / 2]);
                assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
                assert_memory_equal(e.text, expected, strlen(expected));
                if (at == path) {
                        assert_int_equal(state_file_read(path, &(uint8_t *){ NULL }, &(size_t){ 0 }, &e), REFUSED_DENIED);
                        assert_memory_equal(e.text, expected, strlen(expected));
                        assert_int_equal(state_file_set_aside(path, &name, &e), REFUSED_DENIED);
                        assert_memory_equal(e.text, expected, strlen(expected));
                }
                assert_int_equal(lstat(at, &st), 0);
                assert_int_equal(st.st_mode & S_IFMT, kinds[i / 2]);
                assert_int_equal(remove(at), 0);
        }
        assert_int_equal(state_file_read("/dev/null", &(uint8_t *){ NULL }, &(size_t){ 0 }, NULL), REFUSED_DENIED);
        assert_int_equal(state_file_read("/dev/zero", &(uint8_t *){ NULL }, &(size_t){ 0 }, NULL), REFUSED_DENIED);
        assert_int_equal(state_file_set_aside("/dev/null", &name, NULL), REFUSED_DENIED);
}

/* What was left half written is replaced. */
static void test_half_written(void **state) {
        _cleanup_free_ char *beside = NULL;
        _cleanup_free_ uint8_t *found = NULL;
        _cleanup_close_ int fd = -1;
        size_t n;

        assert_true(asprintf(&beside, "%s.new", path) > 0);
        fd = open(beside, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
        assert_int_equal(write(fd, "perfd ev", 8), 8);
        assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, NULL), 0);
        assert_int_equal(state_file_read(path, &found, &n, NULL), 0);
        assert_int_equal(n, 3);
        assert_int_equal(access(beside, F_OK), -1);
}

static void test_folder_of_others(void **state) {
        _cleanup_free_ char *made = NULL, *name = NULL;
        static const mode_t modes[] = { 0777, 01777, 0770, 0702 };
        Explanation e;

        assert_true(asprintf(&made, "%s/made", folder) > 0);
        assert_int_equal(state_file_write(path, (const uint8_t *)"old", 3, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                assert_int_equal(chmod(made, modes[i]), 0);
                assert_int_equal(state_file_read(path, &(uint8_t *){ NULL }, &(size_t){ 0 }, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, "others may write to it"));
                assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, "others may write to it"));
                assert_int_equal(strstr(e.text, "chmod") == NULL, (modes[i] & S_ISVTX) != 0); /* of /tmp it is no remedy */
                assert_non_null(strstr(e.text, "--runtime-directory"));
                assert_int_equal(state_file_set_aside(path, &name, &e), REFUSED_DENIED);
        }
        assert_int_equal(chmod(made, 0700), 0);
        if (geteuid() == 0) {
                assert_int_equal(chown(made, 65534, 65534), 0);
                assert_int_equal(state_file_write(path, (const uint8_t *)"new", 3, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, "it belongs to uid 65534, and not to perfd's, 0, or to root"));
                assert_int_equal(chown(made, 0, 0), 0);
        }
        assert_int_equal(access(path, F_OK), 0);
}

/* What others could have written would be events that they want, opened by perfd. */
static void test_written_by_others(void **state) {
        static const mode_t modes[] = { 0666, 0620, 0602 };
        uint8_t *bytes = NULL;
        size_t n;
        Explanation e;

        assert_int_equal(state_file_write(path, (const uint8_t *)"old", 3, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                assert_int_equal(chmod(path, modes[i]), 0);
                assert_int_equal(state_file_read(path, &bytes, &n, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, "may have been written by others"));
        }
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(state_file_read(path, &bytes, &n, &e), 0);
        free(bytes);
        assert_int_equal(chmod(path, 0600), 0);
        if (geteuid() == 0) {
                assert_int_equal(chown(path, 65534, 65534), 0);
                assert_int_equal(state_file_read(path, &bytes, &n, &e), REFUSED_DENIED);
                assert_non_null(strstr(e.text, "uid 65534"));
                assert_int_equal(chown(path, 0, 0), 0);
        }
}

/* Of a configuration that is only checked, by whoever does it: the folder need not be there, nor be his. */
static void test_place(void **state) {
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(state_file_check_place(path, &e), 0);
        assert_int_equal(state_file_check_place("/nonexistent/folder/events", &e), 0);
        assert_int_equal(state_file_check_place("/tmp/events-of-nobody", &e), REFUSED_DENIED);
        assert_non_null(strstr(e.text, "/tmp cannot be the directory of the state file: others may write to it, as intended"));
        assert_int_equal(state_file_check_place("/dev/null", &e), REFUSED_DENIED);
        assert_non_null(strstr(e.text, "/dev/null is a device"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_written_and_read),
                cmocka_unit_test(test_broken),
                cmocka_unit_test(test_file_of_others),
                cmocka_unit_test(test_what_can_not_be_written),
                cmocka_unit_test(test_set_aside),
                cmocka_unit_test(test_no_regular_file),
                cmocka_unit_test(test_half_written),
                cmocka_unit_test(test_folder_of_others),
                cmocka_unit_test(test_written_by_others),
                cmocka_unit_test(test_place),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
