/* Frames out of a byte stream: however the bytes are cut, the same messages come out, in bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "proto/frame.h"

#define LIMIT ((size_t)100000)

static _Thread_local size_t largest; /* buffer seen by feed() */

/* Copies what fits into the room that is there; how many bytes that was. */
static size_t feed(FrameReader *r, const uint8_t *bytes, size_t n) {
        uint8_t *room;
        size_t size;

        assert_int_equal(frame_reader_room(r, &room, &size), 0);
        if (size < n)
                n = size;
        memcpy(room, bytes, n);
        frame_reader_fed(r, n);
        if (r->size > largest)
                largest = r->size;
        return n;
}

static void expect_message(FrameReader *r, uint8_t fill, size_t length) {
        const uint8_t *message;
        size_t n;

        assert_int_equal(frame_reader_next(r, &message, &n), 0);
        assert_int_equal(n, length);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(message[i], fill);
}

static void expect_code(FrameReader *r, int code) {
        const uint8_t *message;
        size_t n;

        assert_int_equal(frame_reader_next(r, &message, &n), code);
}

/* n frames; frame i has lengths[i] bytes of value i. */
static uint8_t *frames_new(const size_t *lengths, size_t n, size_t *ret_total) {
        size_t total = 0, at = 0;
        uint8_t *bytes;

        for (size_t i = 0; i < n; i++)
                total += FRAME_HEADER_SIZE + lengths[i];
        bytes = malloc(total);
        assert_non_null(bytes);
        for (size_t i = 0; i < n; i++) {
                frame_header_put(bytes + at, (uint32_t)lengths[i]);
                memset(bytes + at + FRAME_HEADER_SIZE, (int)i, lengths[i]);
                at += FRAME_HEADER_SIZE + lengths[i];
        }
        *ret_total = total;
        return bytes;
}

static const size_t lengths[] = { 0, 1, 3, 4092, 4093, 0, LIMIT, 7, LIMIT - 1 };

static void test_byte_at_a_time(void **state) {
        FrameReader r;
        size_t total, next = 0, complete = FRAME_HEADER_SIZE + lengths[0];
        _cleanup_free_ uint8_t *bytes = frames_new(lengths, ARRAY_SIZE(lengths), &total);

        frame_reader_init(&r, LIMIT);
        assert_true(frame_reader_is_empty(&r));
        for (size_t i = 0; i < total; i++) {
                assert_int_equal(feed(&r, bytes + i, 1), 1);
                if (i + 1 < complete) {
                        expect_code(&r, FRAME_E_NEED_MORE);
                        assert_false(frame_reader_is_empty(&r));
                        continue;
                }
                expect_message(&r, (uint8_t)next, lengths[next]);
                assert_true(frame_reader_is_empty(&r));
                if (++next < ARRAY_SIZE(lengths))
                        complete += FRAME_HEADER_SIZE + lengths[next];
        }
        assert_int_equal(next, ARRAY_SIZE(lengths));
        frame_reader_deinit(&r);
        frame_reader_deinit(&r);
}

/* As much as there is room for at a time, taking all that is whole before each. */
static void test_as_much_as_fits(void **state) {
        FrameReader r;
        size_t total, next = 0;
        _cleanup_free_ uint8_t *bytes = frames_new(lengths, ARRAY_SIZE(lengths), &total);
        const uint8_t *message;
        size_t n;

        frame_reader_init(&r, LIMIT);
        for (size_t at = 0; at < total;) {
                size_t fed = feed(&r, bytes + at, total - at);

                assert_true(fed > 0);
                at += fed;
                while (frame_reader_next(&r, &message, &n) == 0) {
                        assert_int_equal(n, lengths[next]);
                        for (size_t i = 0; i < n; i++)
                                assert_int_equal(message[i], next);
                        next++;
                }
        }
        assert_int_equal(next, ARRAY_SIZE(lengths));
        assert_true(frame_reader_is_empty(&r));
        frame_reader_deinit(&r);
}

static void test_many_in_one_read(void **state) {
        size_t small[300], total;
        _cleanup_free_ uint8_t *bytes = NULL;
        FrameReader r;

        for (size_t i = 0; i < ARRAY_SIZE(small); i++)
                small[i] = i % 11;
        bytes = frames_new(small, ARRAY_SIZE(small), &total);
        frame_reader_init(&r, LIMIT);
        assert_int_equal(feed(&r, bytes, total), total);
        for (size_t i = 0; i < ARRAY_SIZE(small); i++)
                expect_message(&r, (uint8_t)i, small[i]);
        expect_code(&r, FRAME_E_NEED_MORE);
        frame_reader_deinit(&r);
}

/* The limit itself is a message, one more ends the stream, and so does the largest length that can be written. */
static void test_limit(void **state) {
        static const uint32_t too_long[] = { LIMIT + 1, 0x7fffffff, 0x80000000, 0xffffffff };
        uint8_t header[FRAME_HEADER_SIZE];
        FrameReader r;

        for (size_t i = 0; i < ARRAY_SIZE(too_long); i++) {
                frame_reader_init(&r, LIMIT);
                frame_header_put(header, too_long[i]);
                assert_int_equal(feed(&r, header, 3), 3);
                expect_code(&r, FRAME_E_NEED_MORE);
                assert_int_equal(feed(&r, header + 3, 1), 1);
                expect_code(&r, FRAME_E_TOO_LONG);
                assert_int_equal(feed(&r, header, 4), 4);
                expect_code(&r, FRAME_E_TOO_LONG);
                assert_int_equal(r.size, 4096);
                frame_reader_deinit(&r);
        }

        frame_reader_init(&r, 0);
        frame_header_put(header, 0);
        assert_int_equal(feed(&r, header, sizeof(header)), sizeof(header));
        expect_message(&r, 0, 0);
        assert_int_equal(r.size, FRAME_HEADER_SIZE);
        frame_reader_deinit(&r);
}

/* An announcement costs nothing: the buffer is at most twice what came, and at most one longest frame. */
static void test_growth(void **state) {
        const size_t limit = FRAME_MAX_REQUEST;
        size_t fed = FRAME_HEADER_SIZE;
        _cleanup_free_ uint8_t *bytes = calloc(1, FRAME_HEADER_SIZE + limit);
        FrameReader r;
        uint8_t *room;
        size_t size;

        assert_non_null(bytes);
        frame_header_put(bytes, (uint32_t)limit);
        frame_reader_init(&r, limit);
        feed(&r, bytes, FRAME_HEADER_SIZE);
        expect_code(&r, FRAME_E_NEED_MORE);
        assert_int_equal(frame_reader_room(&r, &room, &size), 0);
        assert_int_equal(r.size, 4096);

        while (fed < FRAME_HEADER_SIZE + limit) {
                fed += feed(&r, bytes + fed, FRAME_HEADER_SIZE + limit - fed);
                assert_true(r.size <= 4096 || r.size <= 2 * fed);
                assert_true(r.size <= FRAME_HEADER_SIZE + limit);
        }
        expect_message(&r, 0, limit);

        /* what a long request needed is given back */
        assert_int_equal(frame_reader_room(&r, &room, &size), 0);
        assert_int_equal(r.size, 4096);
        frame_reader_deinit(&r);
}

/* A caller that reads on without taking gets no memory beyond one longest frame, and nothing is spoilt. */
static void test_not_taken(void **state) {
        uint8_t frame[FRAME_HEADER_SIZE + 6] = { 6 };
        FrameReader r;

        frame_reader_init(&r, 26);
        for (int i = 0; i < 3; i++)
                assert_int_equal(feed(&r, frame, sizeof(frame)), sizeof(frame));
        assert_int_equal(feed(&r, frame, 1), 0);
        assert_int_equal(r.size, 30);
        expect_message(&r, 0, 6);
        assert_int_equal(feed(&r, frame, sizeof(frame)), sizeof(frame));
        for (int i = 0; i < 3; i++)
                expect_message(&r, 0, 6);
        assert_true(frame_reader_is_empty(&r));
        frame_reader_deinit(&r);
}

/* Cut at random, from a fixed seed. */
static void test_random_cuts(void **state) {
        unsigned seed = 20;
        size_t total, many[200], next = 0, at = 0;
        _cleanup_free_ uint8_t *bytes = NULL;
        FrameReader r;

        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i] = (size_t)rand_r(&seed) % (rand_r(&seed) % 8 == 0 ? 30000 : 100);
        bytes = frames_new(many, ARRAY_SIZE(many), &total);
        largest = 0;
        frame_reader_init(&r, 30000);
        while (next < ARRAY_SIZE(many)) {
                size_t n = 1 + (size_t)rand_r(&seed) % 9000, held;
                const uint8_t *message;
                size_t length;

                at += feed(&r, bytes + at, n < total - at ? n : total - at);
                held = r.end - r.begin;
                while (rand_r(&seed) % 4 != 0 && frame_reader_next(&r, &message, &length) == 0) {
                        assert_int_equal(length, many[next]);
                        for (size_t i = 0; i < length; i++)
                                assert_int_equal(message[i], (uint8_t)next);
                        held -= FRAME_HEADER_SIZE + length;
                        next++;
                }
                assert_int_equal(r.end - r.begin, held);
        }
        assert_int_equal(at, total);
        assert_true(frame_reader_is_empty(&r));
        assert_true(largest <= FRAME_HEADER_SIZE + 30000);
        frame_reader_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_byte_at_a_time),   cmocka_unit_test(test_as_much_as_fits),
                cmocka_unit_test(test_many_in_one_read), cmocka_unit_test(test_limit),
                cmocka_unit_test(test_growth),           cmocka_unit_test(test_not_taken),
                cmocka_unit_test(test_random_cuts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
