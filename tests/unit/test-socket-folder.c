/* Where a socket may be: in no folder in which, or in whose parents, somebody else could put another one in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/socket-folder.h"

static char top[64], folder[80], inner[96], link_to_it[80];

static void make_folders(void) {
        strcpy(top, "/tmp/test-socket-folder.XXXXXX");
        assert_non_null(mkdtemp(top));
        (void)snprintf(folder, sizeof(folder), "%s/folder", top);
        (void)snprintf(inner, sizeof(inner), "%s/inner", folder);
        (void)snprintf(link_to_it, sizeof(link_to_it), "%s/link", top);
        assert_int_equal(mkdir(folder, 0700), 0);
        assert_int_equal(mkdir(inner, 0700), 0);
        assert_int_equal(symlink(inner, link_to_it), 0);
}

static void remove_folders(void) {
        assert_int_equal(unlink(link_to_it), 0);
        assert_int_equal(rmdir(inner), 0);
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(rmdir(top), 0);
}

/* Of a socket in the folder, in one below it, and by a link from elsewhere; `said`: why not, or NULL. */
static void expect(const char *said) {
        const char *const folders[] = { folder, inner, link_to_it };

        for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
                Explanation e = EXPLANATION_NULL;
                char path[128];

                (void)snprintf(path, sizeof(path), "%s/socket", folders[i]);
                assert_int_equal(socket_folder_check(path, &e), said ? REFUSED_DENIED : 0);
                if (said && !(strstr(e.text, said) && strstr(e.text, path) && strstr(e.text, folder)))
                        fail_msg("'%s' does not say '%s'", e.text, said);
        }
}

static void test_modes(void **state) {
        make_folders();
        expect(NULL);
        assert_int_equal(chmod(folder, 0777), 0);
        expect("all users may write into");
        assert_int_equal(chmod(folder, 01777), 0);
        expect(NULL);
        assert_int_equal(chmod(folder, 0770), 0);
        expect(NULL);
        remove_folders();
}

static void test_owner(void **state) {
        if (geteuid() != 0) /* who is not root can give nothing away */
                skip();
        make_folders();
        assert_int_equal(chown(folder, 65534, 65534), 0);
        expect("belongs to uid 65534, who could replace it");
        assert_int_equal(chown(folder, 0, 65534), 0);
        expect(NULL);
        remove_folders();
}

static void test_what_is_not_there(void **state) {
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(socket_folder_check("/no-such-folder-here/socket", &e), 0);
        assert_int_equal(socket_folder_check("/socket", &e), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_modes),
                cmocka_unit_test(test_owner),
                cmocka_unit_test(test_what_is_not_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
