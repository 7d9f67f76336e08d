/* The spool's files: what was appended comes back, once and in order, also after a restart, and up to a limit. */
#include "tests/unit/spool-rig.h"

#include "client/relay/publish/checksum.h"

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_checksum),
                cmocka_unit_test(test_longest),
                cmocka_unit_test(test_restart),
                cmocka_unit_test(test_limit),
                cmocka_unit_test(test_read_and_not_stored),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
