/* The spool's files when they are damaged: what is whole comes back, and what does not is said, with its place. */
#include "tests/unit/spool-rig.h"

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
                bytes[torn ? 512 + 8 : 600] ^= 1; /* the newer one, or what is no mark */
                write_file("stored", bytes, 512 + 24);
                s = open_spool();
                assert_int_equal(spool_count(s), torn ? 3 : 2);
                assert_false(s->has_lost_marks);
                expect(s, torn ? 4 : 5, 20);
                spool_close(s);
        }
}

/* Damaged, empty, or removed: all count as not stored, and that is known. */
static void test_lost_marks(void **state) {
        uint8_t bytes[1024];

        for (int how = 0; how < 3; how++) {
                Spool *s;

                empty();
                s = open_spool();
                assert_false(s->has_lost_marks && spool_count(s) > 0);
                for (unsigned i = 1; i <= 6; i++)
                        append(s, i, 20);
                spool_close(s);
                s = open_spool();
                assert_false(s->has_lost_marks); /* nothing was stored, which is known */
                assert_int_equal(spool_count(s), 6);
                spool_set_stored(s, 4);
                spool_close(s);
                memset(bytes, 0x55, sizeof(bytes));
                write_file("stored", bytes, how == 0 ? 512 + 24 : 0);
                if (how == 2) {
                        char name[160];

                        name_in("stored", name);
                        assert_int_equal(unlink(name), 0);
                }
                for (int run = 0; run < 2; run++) {
                        s = open_spool();
                        assert_true(s->has_lost_marks == (run == 0));
                        assert_int_equal(spool_count(s), run == 0 ? 6 : 5);
                        spool_set_stored(s, 1);
                        spool_close(s);
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_truncated),
                cmocka_unit_test(test_changed),
                cmocka_unit_test(test_header),
                cmocka_unit_test(test_marks),
                cmocka_unit_test(test_lost_marks),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
