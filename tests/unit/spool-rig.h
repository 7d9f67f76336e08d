/* For tests of the spool: a directory of its own, messages that can be told apart, and its files. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/relay/publish/spool.h"
#include "daemon/base/cleanup.h"

#define MACHINE "0123456789abcdef0123456789abcdef"
#define LIMIT SPOOL_LIMIT_MIN
#define FIRST_FILE "0000000000000000.spool"

static char folder[] = "/tmp/test-spool.XXXXXX", path[80];

static inline void empty(void) {
        DIR *d = opendir(path);
        const struct dirent *entry;

        while (d && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        assert_true(unlinkat(dirfd(d), entry->d_name, 0) == 0 || unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR) == 0);
        if (d)
                closedir(d);
        else
                assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chmod(path, 0700), 0);
}

static inline int make_folder(void **state) {
        if (!mkdtemp(folder))
                return -1;
        (void)snprintf(path, sizeof(path), "%s/spool", folder);
        return 0;
}

static inline int remove_folder(void **state) {
        char command[120];

        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static inline Spool *open_spool(void) {
        Explanation e = EXPLANATION_NULL;
        Spool *s = NULL;

        if (spool_open(path, LIMIT, MACHINE, &s, &e) != 0)
                fail_msg("%s", e.text);
        return s;
}

static inline void refused(const char *machine, const char *expected) {
        Explanation e = EXPLANATION_NULL;
        Spool *s = NULL;

        assert_true(spool_open(path, LIMIT, machine, &s, &e) > 0);
        assert_null(s);
        if (!strstr(e.text, expected))
                fail_msg("'%s' is not in: %s", expected, e.text);
        assert_string_equal(e.reason, "spool");
}

static inline Message *make(unsigned n, size_t length) {
        _cleanup_free_ uint8_t *bytes = malloc(length + 1);
        Message *m;

        assert_non_null(bytes);
        for (size_t i = 0; i < length; i++)
                bytes[i] = (uint8_t)(n * 31 + i * 7);
        m = message_new(bytes, length);
        assert_non_null(m);
        (void)snprintf(m->subject, sizeof(m->subject), "perfd.web1.route%u", n);
        (void)snprintf(m->id, sizeof(m->id), "id.%u", n);
        message_add_header(m, "Perfd-Sequence", "%u", n);
        message_add_header(m, "Perfd-Part", "1/1");
        return m;
}

/* Message n, as make() makes it. */
static inline void check_message(const Message *m, unsigned n, size_t length) {
        Message *expected = make(n, length);

        assert_string_equal(m->subject, expected->subject);
        assert_string_equal(m->id, expected->id);
        assert_int_equal(m->n_headers, 2);
        for (unsigned i = 0; i < 2; i++) {
                assert_string_equal(m->headers[i].name, expected->headers[i].name);
                assert_string_equal(m->headers[i].value, expected->headers[i].value);
        }
        assert_int_equal(m->length, length);
        assert_memory_equal(m->bytes, expected->bytes, length);
        message_free(expected);
}

static inline void append(Spool *s, unsigned n, size_t length) {
        Message *m = make(n, length);

        assert_int_equal(spool_append(s, m), 0);
        message_free(m);
}

static inline void expect(Spool *s, unsigned n, size_t length) {
        SpoolDamage damage;
        Message *m = NULL;

        assert_int_equal(spool_next(s, &m, &damage), 0);
        check_message(m, n, length);
        message_free(m);
}

static inline void expect_end(Spool *s) {
        SpoolDamage damage;
        Message *m = NULL;

        assert_int_equal(spool_next(s, &m, &damage), SPOOL_E_NONE);
        assert_false(spool_has_unread(s));
}

static inline void name_in(const char *file, char to[160]) {
        (void)snprintf(to, 160, "%s/%s", path, file);
}

static inline size_t read_file(const char *file, uint8_t *to, size_t size) {
        char name[160];
        _cleanup_close_ int fd = -1;
        ssize_t n;

        name_in(file, name);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, to, size) : 0;
        assert_true(n >= 0);
        return (size_t)n;
}

static inline void write_file(const char *file, const uint8_t *bytes, size_t length) {
        char name[160];
        _cleanup_close_ int fd = -1;

        name_in(file, name);
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(write(fd, bytes, length) == (ssize_t)length);
}

static inline bool exists(const char *file) {
        char name[160];

        name_in(file, name);
        return access(name, F_OK) == 0;
}
