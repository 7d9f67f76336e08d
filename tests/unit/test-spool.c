/* The spool's files: what was appended comes back, once and in order, also after a restart, and up to a limit. */
#include "tests/unit/spool-rig.h"

#include <sched.h>

#include "client/relay/publish/checksum.h"
#include "client/relay/publish/spool-sync.h"

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

/* What was read and is not stored is there after a restart, in the files before that which is read. */
static void test_read_and_not_stored(void **state) {
        Spool *s;

        empty();
        s = open_spool();
        for (unsigned i = 1; i <= 35; i++)
                append(s, i, 100000);
        for (unsigned i = 1; i <= 25; i++)
                expect(s, i, 100000);
        spool_set_stored(s, 12);
        assert_false(exists(FIRST_FILE));
        spool_close(s);
        s = open_spool();
        for (unsigned i = 13; i <= 35; i++)
                expect(s, i, 100000);
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

/* ---- what is not the relay's --------------------------------------------------------------------------------------- */

#define NTH_FILE(n) "000000000000000" n ".spool"

static void plant_link(const char *name) {
        assert_int_equal(symlink("/dev/zero", name), 0);
}

static void plant_directory(const char *name) {
        assert_int_equal(mkdir(name, 0700), 0);
}

/* Whoever opens it to read or to write, and waits, waits for ever. */
static void plant_fifo(const char *name) {
        assert_int_equal(mkfifo(name, 0600), 0);
}

/* As large as one of the spool, and of no use to whom it does not belong to. */
static void plant_stranger(const char *name) {
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert_true(fd >= 0 && ftruncate(fd, 100000) == 0 && fchown(fd, 65534, 65534) == 0);
        close_fd(fd);
}

/* Writes all files to disk: what one request has met is told by the next one that is taken. */
static void sync_all(Spool *s) {
        SpoolSync *y = NULL;
        int error;

        assert_int_equal(spool_sync_start(s, &y), 0);
        for (int i = 0; i < 2; i++) {
                s->unsynced = 0;
                do
                        error = spool_sync_request(y, s);
                while (error == 0 && s->unsynced != UINT64_MAX && sched_yield() == 0);
                assert_int_equal(error, 0);
        }
        spool_sync_stop(y);
}

/*
 * Before, between and behind files of the spool, and where the next one would be made: each message comes back, in this run and in the
 * next, and what was planted stays.
 */
static void test_planted(void **state) {
        static const struct {
                void (*plant)(const char *name);
                const char *what;
        } cases[] = { { plant_link, "is a symbolic link" }, { plant_directory, "is a directory" }, { plant_fifo, "is a FIFO" },
                      { plant_stranger, "belongs to another user" } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                static const char *const files[] = { FIRST_FILE, NTH_FILE("2"), NTH_FILE("4"), NTH_FILE("5"), "ffffffffffffffff.spool" };
                char name[160];
                Spool *s;

                if (cases[i].plant == plant_stranger && geteuid() != 0) {
                        print_message("a file of another user is not planted: only root can give it to him\n");
                        continue;
                }
                empty();
                for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
                        name_in(files[k], name);
                        cases[i].plant(name);
                }
                for (unsigned n = 1; n <= 3; n++) { /* a file each */
                        s = open_spool();
                        assert_int_equal(s->foreign.n, ARRAY_SIZE(files));
                        assert_non_null(strstr(s->foreign.what, cases[i].what));
                        assert_non_null(strstr(s->foreign.what, "remove it"));
                        assert_int_equal(s->foreign_marks.n, 0);
                        append(s, n, n * 100);
                        for (unsigned k = 1; k <= n; k++)
                                expect(s, k, k * 100);
                        expect_end(s);
                        assert_int_equal(s->n_segments, n);
                        sync_all(s);
                        spool_close(s);
                }
                assert_true(exists(NTH_FILE("1")) && exists(NTH_FILE("3")) && exists(NTH_FILE("6")));
                s = open_spool();
                spool_set_stored(s, 3);
                spool_close(s);
                s = open_spool();
                expect_end(s);
                assert_int_equal(s->n_segments, 0);
                assert_int_equal(s->foreign.n, ARRAY_SIZE(files)); /* nothing of it was removed */
                spool_close(s);
        }
}

/* More names in a row than one call tries: the next ones go on behind them. */
static void test_planted_row(void **state) {
        Message *m = make(1, 10);
        unsigned n_failed = 0;
        char name[160];
        Spool *s;

        empty();
        for (unsigned i = 0; i < 2500; i++) {
                char file[SPOOL_NAME_SIZE];

                spool_segment_name(i, file);
                name_in(file, name);
                plant_link(name);
        }
        s = open_spool();
        assert_int_equal(s->foreign.n, 2500);
        while (spool_append(s, m) == SPOOL_E_FAILED) {
                assert_int_equal(s->error, EEXIST);
                assert_true(++n_failed <= 2);
        }
        assert_int_equal(n_failed, 2);
        expect(s, 1, 10);
        message_free(m);
        spool_close(s);
        s = open_spool();
        expect(s, 1, 10);
        spool_close(s);
}

/* In the place of what says how far messages are stored: all is published, and again by the next run. */
static void test_planted_marks(void **state) {
        void (*const plant[])(const char *name) = { plant_link, plant_directory, plant_fifo, plant_stranger };

        for (size_t i = 0; i < ARRAY_SIZE(plant); i++) {
                char name[160];
                Spool *s;

                if (plant[i] == plant_stranger && geteuid() != 0)
                        continue; /* test_planted() says so */
                empty();
                name_in("stored", name);
                plant[i](name);
                s = open_spool();
                assert_int_equal(s->foreign_marks.n, 1);
                assert_string_equal(s->foreign_marks.file, "stored");
                append(s, 1, 100);
                append(s, 2, 200);
                sync_all(s);
                expect(s, 1, 100);
                expect(s, 2, 200);
                spool_set_stored(s, 1);
                assert_int_equal(spool_count(s), 1);
                spool_close(s);
                s = open_spool();
                expect(s, 1, 100);
                expect(s, 2, 200);
                spool_close(s);
                assert_int_equal(remove(name), 0);
                s = open_spool();
                assert_int_equal(s->foreign_marks.n, 0);
                expect(s, 1, 100);
                expect(s, 2, 200);
                spool_set_stored(s, 2);
                spool_close(s);
                s = open_spool();
                expect_end(s);
                spool_close(s);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_checksum),
                cmocka_unit_test(test_longest),
                cmocka_unit_test(test_restart),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_read_and_not_stored),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_planted),
                cmocka_unit_test(test_planted_row),
                cmocka_unit_test(test_planted_marks),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
