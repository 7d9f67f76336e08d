/*
 * The spool's files: what was appended comes back, once and in order, whatever became of the files; and what does not come back is said,
 * with its place.
 */
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

#include "client/relay/publish/checksum.h"
#include "client/relay/publish/spool.h"
#include "daemon/base/cleanup.h"

#define MACHINE "0123456789abcdef0123456789abcdef"
#define LIMIT SPOOL_LIMIT_MIN
#define FIRST_FILE "0000000000000000.spool"

static char folder[] = "/tmp/test-spool.XXXXXX", path[80];

static void empty(void) {
        DIR *d = opendir(path);
        const struct dirent *entry;

        while (d && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
        if (d)
                closedir(d);
        else
                assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chmod(path, 0700), 0);
}

static int make_folder(void **state) {
        if (!mkdtemp(folder))
                return -1;
        (void)snprintf(path, sizeof(path), "%s/spool", folder);
        return 0;
}

static int remove_folder(void **state) {
        char command[120];

        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static Spool *open_spool(void) {
        Explanation e = EXPLANATION_NULL;
        Spool *s = NULL;

        if (spool_open(path, LIMIT, MACHINE, &s, &e) != 0)
                fail_msg("%s", e.text);
        return s;
}

static void refused(const char *machine, const char *expected) {
        Explanation e = EXPLANATION_NULL;
        Spool *s = NULL;

        assert_true(spool_open(path, LIMIT, machine, &s, &e) > 0);
        assert_null(s);
        if (!strstr(e.text, expected))
                fail_msg("'%s' is not in: %s", expected, e.text);
        assert_string_equal(e.reason, "spool");
}

static Message *make(unsigned n, size_t length) {
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
static void check_message(const Message *m, unsigned n, size_t length) {
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

static void append(Spool *s, unsigned n, size_t length) {
        Message *m = make(n, length);

        assert_int_equal(spool_append(s, m), 0);
        message_free(m);
}

static void expect(Spool *s, unsigned n, size_t length) {
        SpoolDamage damage;
        Message *m = NULL;

        assert_int_equal(spool_next(s, &m, &damage), 0);
        check_message(m, n, length);
        message_free(m);
}

static void expect_end(Spool *s) {
        SpoolDamage damage;
        Message *m = NULL;

        assert_int_equal(spool_next(s, &m, &damage), SPOOL_E_NONE);
        assert_false(spool_has_unread(s));
}

static void name_in(const char *file, char to[160]) {
        (void)snprintf(to, 160, "%s/%s", path, file);
}

static size_t read_file(const char *file, uint8_t *to, size_t size) {
        char name[160];
        _cleanup_close_ int fd = -1;
        ssize_t n;

        name_in(file, name);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, to, size) : 0;
        assert_true(n >= 0);
        return (size_t)n;
}

static void write_file(const char *file, const uint8_t *bytes, size_t length) {
        char name[160];
        _cleanup_close_ int fd = -1;

        name_in(file, name);
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(write(fd, bytes, length) == (ssize_t)length);
}

static bool exists(const char *file) {
        char name[160];

        name_in(file, name);
        return access(name, F_OK) == 0;
}

/* ---- the format --------------------------------------------------------------------------------------------------- */

static void test_checksum(void **state) {
        uint8_t zeros[32] = { 0 }, rising[32];

        for (size_t i = 0; i < sizeof(rising); i++)
                rising[i] = (uint8_t)i;
        assert_int_equal(checksum(0, (const uint8_t *)"123456789", 9), 0xe3069283); /* the check value of CRC-32C */
        assert_int_equal(checksum(0, zeros, sizeof(zeros)), 0x8a9136aa);             /* RFC 3720, B.4 */
        assert_int_equal(checksum(0, rising, sizeof(rising)), 0x46dd794e);
        assert_int_equal(checksum(checksum(0, rising, 13), rising + 13, 19), 0x46dd794e);
}

static void test_longest(void **state) {
        Message *m = make(1, MESSAGE_BYTES_MAX), *found;
        _cleanup_free_ uint8_t *record = malloc(SPOOL_RECORD_MAX);
        SpoolPlace place;

        memset(m->subject, 's', sizeof(m->subject) - 1);
        memset(m->id, 'i', sizeof(m->id) - 1);
        while (m->n_headers < MESSAGE_HEADERS_MAX)
                message_add_header(m, "a-name-of-all-23-letters", "%0100d", 7);
        assert_true(spool_record_size(m) <= SPOOL_RECORD_MAX);
        spool_record_put(record, m, 7, 99);
        assert_int_equal(spool_find(record, spool_record_size(m) - 1, false, 99, 6, &place), SPOOL_MORE);
        assert_int_equal(spool_find(record, spool_record_size(m), false, 99, 6, &place), SPOOL_RECORD);
        assert_int_equal(place.length, spool_record_size(m));
        assert_int_equal(spool_record_get(record, &place, &found), 0);
        assert_int_equal(found->spooled, 7);
        assert_string_equal(found->subject, m->subject);
        assert_string_equal(found->id, m->id);
        assert_int_equal(found->n_headers, MESSAGE_HEADERS_MAX);
        assert_memory_equal(found->bytes, m->bytes, MESSAGE_BYTES_MAX);
        assert_int_equal(spool_find(record, spool_record_size(m), true, 98, 6, &place), SPOOL_DAMAGE); /* another file's */
        assert_int_equal(spool_find(record, spool_record_size(m), true, 99, 7, &place), SPOOL_DAMAGE); /* an earlier one's */
        message_free(found);
        message_free(m);
}

/* ---- a life ------------------------------------------------------------------------------------------------------- */

static void test_restart(void **state) {
        Spool *s;

        empty();
        s = open_spool();
        expect_end(s);
        for (unsigned i = 1; i <= 5; i++)
                append(s, i, i * 100);
        expect(s, 1, 100);
        expect(s, 2, 200);
        spool_set_stored(s, 1);
        assert_int_equal(spool_count(s), 4);
        spool_close(s); /* as kill -9 would leave it: nothing is written at the end */
        s = open_spool();
        assert_int_equal(spool_count(s), 4);
        assert_int_equal(s->torn.length, 0);
        append(s, 6, 600);
        for (unsigned i = 2; i <= 6; i++)
                expect(s, i, i * 100);
        expect_end(s);
        append(s, 7, 0);
        spool_pass_over(s);
        expect_end(s);
        spool_set_stored(s, 7);
        assert_int_equal(spool_count(s), 0);
        assert_false(exists(FIRST_FILE));
        spool_close(s);
        s = open_spool();
        expect_end(s);
        append(s, 8, 8);
        assert_int_equal(s->last, 8);
        spool_close(s);
        s = open_spool();
        expect(s, 8, 8);
        expect_end(s);
        spool_close(s);
}

/* Up to the limit and never above it; what is stored makes room, a file at a time. */
static void test_limit(void **state) {
        unsigned n_in = 0, n_out = 0;
        Message *m;
        Spool *s;

        empty();
        s = open_spool();
        for (int round = 0; round < 5; round++) {
                while (m = make(n_in + 1, 100000), spool_append(s, m) == 0) {
                        n_in++;
                        message_free(m);
                        assert_true(s->size <= LIMIT);
                }
                message_free(m);
                assert_true(s->size > LIMIT - 200000);
                for (int i = 0; i < 15; i++)
                        expect(s, ++n_out, 100000);
                spool_set_stored(s, n_out);
                assert_true(s->size < LIMIT - 900000);
        }
        while (n_out < n_in)
                expect(s, ++n_out, 100000);
        expect_end(s);
        spool_close(s);
}

static void test_refused(void **state) {
        uint8_t bytes[4096];
        Spool *s;
        size_t n;

        empty();
        s = open_spool();
        append(s, 1, 10);
        refused(MACHINE, "is the spool of another perfd-relay that runs");
        spool_close(s);
        refused("f123456789abcdef0123456789abcdef", "is of another host, whose machine-id is " MACHINE);
        n = read_file(FIRST_FILE, bytes, sizeof(bytes));
        bytes[8] = SPOOL_VERSION + 1;
        for (int i = 0; i < 4; i++)
                bytes[60 + i] = (uint8_t)(checksum(0, bytes, 60) >> 8 * i);
        write_file(FIRST_FILE, bytes, n);
        refused(MACHINE, "by a perfd-relay of another version");
        assert_int_equal(chmod(path, 0770), 0);
        refused(MACHINE, "others can write to");
        empty();
        assert_int_equal(rmdir(path), 0);
        refused(MACHINE, "does not exist");
        close_fd(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        refused(MACHINE, "is no directory");
        assert_int_equal(unlink(path), 0);
}

/* ---- damage ------------------------------------------------------------------------------------------------------- */

#define N_MESSAGES 4

/* A small file of messages, where each begins, and where the last one ends. */
static size_t make_file(uint8_t *bytes, size_t size, size_t begins[N_MESSAGES + 1]) {
        Spool *s;

        empty();
        s = open_spool();
        for (unsigned i = 0; i < N_MESSAGES; i++) {
                begins[i] = s->n_segments > 0 ? s->segments[0].size : SPOOL_HEADER_SIZE;
                append(s, i + 1, i * 13);
        }
        begins[N_MESSAGES] = s->segments[0].size;
        spool_close(s);
        assert_true(read_file(FIRST_FILE, bytes, size) == begins[N_MESSAGES]);
        return begins[N_MESSAGES];
}

/* Cut at each byte: all messages before that are there, the rest is cut off and said, and what comes next is kept as ever. */
static void test_truncated(void **state) {
        size_t begins[N_MESSAGES + 1], length;
        uint8_t bytes[4096];

        length = make_file(bytes, sizeof(bytes), begins);
        for (size_t n = 0; n <= length; n++) {
                unsigned whole = 0;
                size_t end;
                Spool *s;

                while (whole < N_MESSAGES && n >= begins[whole + 1])
                        whole++;
                end = n < SPOOL_HEADER_SIZE ? 0 : begins[whole];
                empty();
                write_file(FIRST_FILE, bytes, n);
                for (int run = 0; run < 2; run++) {
                        s = open_spool();
                        assert_int_equal(s->torn.length, run == 0 ? n - end : 0); /* it is said once */
                        assert_true(run > 0 || n == end || (s->torn.offset == end && strcmp(s->torn.file, FIRST_FILE) == 0));
                        assert_int_equal(spool_count(s), whole);
                        for (unsigned i = 0; i < whole; i++)
                                expect(s, i + 1, i * 13);
                        expect_end(s);
                        spool_close(s);
                }
                s = open_spool();
                append(s, 77, 77);
                for (unsigned i = 0; i < whole; i++)
                        expect(s, i + 1, i * 13);
                expect(s, 77, 77);
                expect_end(s);
                spool_close(s);
        }
}

/* Messages other than `bad` are there, and it is said where that one was: in the file, or as what was cut off at its end. */
static void check_damaged(Spool *s, const size_t begins[N_MESSAGES + 1], unsigned bad) {
        SpoolDamage damage = s->torn;
        unsigned n_said = damage.length > 0;

        for (;;) {
                Message *m = NULL;
                int r = spool_next(s, &m, &damage);

                if (r == SPOOL_E_NONE)
                        break;
                if (r == SPOOL_E_DAMAGED) {
                        n_said++;
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(m->spooled != bad + 1);
                check_message(m, (unsigned)m->spooled, (size_t)(m->spooled - 1) * 13);
                message_free(m);
        }
        assert_int_equal(n_said, 1);
        assert_string_equal(damage.file, FIRST_FILE);
        assert_int_equal(damage.offset, begins[bad]);
        assert_int_equal(damage.length, begins[bad + 1] - begins[bad]);
}

static bool is_padding(const uint8_t *bytes, size_t at, const size_t begins[N_MESSAGES + 1]) {
        unsigned i = 0;
        uint32_t length;

        while (at >= begins[i + 1])
                i++;
        memcpy(&length, bytes + begins[i] + 4, sizeof(length));
        return at >= begins[i] + SPOOL_RECORD_HEADER_SIZE + length;
}

/* Each byte changed: one message is lost, and all others are there. */
static void test_changed(void **state) {
        size_t begins[N_MESSAGES + 1], length;
        uint8_t bytes[4096];

        length = make_file(bytes, sizeof(bytes), begins);
        for (size_t at = SPOOL_HEADER_SIZE; at < length; at++) {
                unsigned bad = 0;
                Spool *s;

                if (is_padding(bytes, at, begins))
                        continue;
                while (at >= begins[bad + 1])
                        bad++;
                empty();
                bytes[at] ^= 0x55;
                write_file(FIRST_FILE, bytes, length);
                bytes[at] ^= 0x55;
                s = open_spool();
                check_damaged(s, begins, bad);
                assert_int_equal(spool_count(s), bad == N_MESSAGES - 1 ? N_MESSAGES - 1 : N_MESSAGES);
                append(s, 9, 9);
                expect(s, 9, 9);
                spool_set_stored(s, s->last);
                assert_false(exists(FIRST_FILE));
                assert_true(exists(FIRST_FILE ".damaged") == (bad != N_MESSAGES - 1)); /* what is put aside is not what was cut off */
                spool_close(s);
        }
}

/* A header that is damaged costs its file, and not those beside it. */
static void test_header(void **state) {
        uint8_t bytes[4096];
        size_t n;

        for (size_t at = 0; at < SPOOL_HEADER_SIZE; at++) {
                SpoolDamage damage;
                Message *m;
                Spool *s;

                empty();
                for (unsigned i = 1; i <= 3; i++) {
                        s = open_spool(); /* each run has a file of its own */
                        append(s, i, 50);
                        spool_close(s);
                }
                n = read_file("0000000000000001.spool", bytes, sizeof(bytes));
                bytes[at] ^= 0x55;
                write_file("0000000000000001.spool", bytes, n);
                s = open_spool();
                append(s, 4, 50);
                expect(s, 1, 50);
                assert_int_equal(spool_next(s, &m, &damage), SPOOL_E_DAMAGED);
                assert_string_equal(damage.file, "0000000000000001.spool");
                assert_int_equal(damage.offset, 0);
                assert_int_equal(damage.length, n);
                expect(s, 3, 50);
                expect(s, 4, 50);
                expect_end(s);
                spool_close(s);
        }
}

/* Of both marks the newer one counts, and a torn one does not. */
static void test_marks(void **state) {
        uint8_t bytes[1024];

        for (int torn = 0; torn < 2; torn++) {
                Spool *s;

                empty();
                s = open_spool();
                for (unsigned i = 1; i <= 6; i++)
                        append(s, i, 20);
                for (unsigned i = 1; i <= 4; i++)
                        spool_set_stored(s, i);
                spool_close(s);
                assert_int_equal(read_file("stored", bytes, sizeof(bytes)), 512 + 24);
                bytes[torn ? 8 : 600] ^= 1; /* the newer one, or what is no mark */
                write_file("stored", bytes, 512 + 24);
                s = open_spool();
                assert_int_equal(spool_count(s), torn ? 3 : 2);
                expect(s, torn ? 4 : 5, 20);
                spool_close(s);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_checksum), cmocka_unit_test(test_longest),   cmocka_unit_test(test_restart),
                cmocka_unit_test(test_limit),    cmocka_unit_test(test_refused),   cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_changed),  cmocka_unit_test(test_header),    cmocka_unit_test(test_marks),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
