/* For tests of kernel/cgroup*.c: a host laid out in a temporary folder, which is removed again. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/cgroup/cgroup.h"

#define ID_A "3dcb1e0e1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d10"
#define ID_B "3dcb1e0e1a95ffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define ID_C "f00dfeed1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d11"

static char host[64]; /* the root of the host that is played */

static inline const char *at(const char *path) {
        static char whole[2 * PATH_MAX];

        (void)snprintf(whole, sizeof(whole), "%s%s", host, path);
        return whole;
}

/* With all folders above it. */
static inline void make_folder(const char *path) {
        char whole[2 * PATH_MAX];

        (void)snprintf(whole, sizeof(whole), "%s", at(path));
        for (char *p = whole + strlen(host) + 1; (p = strchr(p, '/')); p++) {
                *p = '\0';
                (void)mkdir(whole, 0755);
                *p = '/';
        }
        assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
}

static inline void remove_folder(const char *path) {
        assert_int_equal(rmdir(at(path)), 0);
}

static inline void write_file(const char *path, const char *text) {
        FILE *f = fopen(at(path), "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

/* As "8:1", what all of the played host has for st_dev. */
static inline const char *host_device(void) {
        static char device[32];
        struct stat s;

        assert_int_equal(stat(host, &s), 0);
        (void)snprintf(device, sizeof(device), "%u:%u", major(s.st_dev), minor(s.st_dev));
        return device;
}

static inline int set_up_host(void **state) {
        /* ten thousand folders wait for nobody's disk in memory */
        (void)snprintf(host, sizeof(host), "%s/perfd-test.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(host))
                return -1;
        make_folder("/proc/self");
        make_folder("/sys/fs/cgroup");
        return 0;
}

static inline int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw) {
        return remove(path);
}

static inline int tear_down_host(void **state) {
        return nftw(host, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline size_t count_fds(void) {
        DIR *d = opendir("/proc/self/fd");
        size_t n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* The whole tree of the host below /sys/fs/cgroup is the hierarchy. */
static inline CgroupHierarchy host_hierarchy(void) {
        return (CgroupHierarchy){ .path = strdup(at("/sys/fs/cgroup")), .root = strdup("/"), .host = strdup(host) };
}

static inline void make_cgroup(const char *path) {
        char whole[PATH_MAX + 16];

        (void)snprintf(whole, sizeof(whole), "/sys/fs/cgroup%s", path);
        make_folder(whole);
}

/* What is found, as "/a /b"; each is held by an fd of that very folder. */
static inline void check_resolves(CgroupNaming naming, const char *name, const char *expected) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        Explanation e = EXPLANATION_NULL;
        char found[4096] = "";
        Cgroup *list = NULL;
        size_t n = 0;

        if (cgroup_resolve(&h, naming, name, &list, &n, &e) != 0)
                fail_msg("%s: %s", name, e.text);
        for (size_t i = 0; i < n; i++) {
                char path[PATH_MAX];
                struct stat mine, theirs;

                (void)snprintf(path, sizeof(path), "%s%s", h.path, list[i].path);
                assert_int_equal(stat(path, &theirs), 0);
                assert_int_equal(fstat(list[i].fd, &mine), 0);
                assert_true(mine.st_ino == theirs.st_ino && list[i].inode == theirs.st_ino);
                assert_int_equal(fcntl(list[i].fd, F_GETFL) & O_ACCMODE, O_RDONLY);
                assert_int_equal(fcntl(list[i].fd, F_GETFD), FD_CLOEXEC);
                assert_false(cgroup_is_gone(&h, &list[i]));
                strcat(strcat(found, i > 0 ? " " : ""), list[i].path);
        }
        assert_string_equal(found, expected);
        cgroups_free(list, n);
}

static inline void check_refused(CgroupNaming naming, const char *name, int refusal, const char *reason,
                                 const char *words) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        Explanation e = EXPLANATION_NULL;
        Cgroup *list = NULL;
        size_t n = 0, n_fds = count_fds();

        assert_int_equal(cgroup_resolve(&h, naming, name, &list, &n, &e), refusal);
        assert_string_equal(e.reason, reason);
        if (!strstr(e.text, words))
                fail_msg("'%s' is not in: %s", words, e.text);
        assert_null(list);
        assert_int_equal(count_fds(), n_fds);
}
