/* What one side compresses the other reads, however it is cut, as soon as it is there; and what is no such stream costs nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "proto/compression.h"

#define PIECE ((size_t)64 << 10)

static uint8_t *made_bytes(size_t n) {
        uint8_t *bytes = malloc(n);
        uint32_t state = 1;

        assert_non_null(bytes);
        for (size_t i = 0; i < n; i++) {
                state = state * 1664525 + 1013904223;
                bytes[i] = i % 7 == 0 ? (uint8_t)(state >> 24) : (uint8_t)i;
        }
        return bytes;
}

/* Feeds n bytes, `cut` at a time, takes `size` at a time, and appends what comes to `to`. The code that ends it. */
static int feed(Decompressor *d, const uint8_t *bytes, size_t n, size_t cut, size_t size, uint8_t *to, size_t *n_to) {
        int r = DECOMPRESSOR_E_NEED_MORE;

        for (size_t at = 0; at < n && r == DECOMPRESSOR_E_NEED_MORE;) {
                uint8_t *room;
                size_t most = decompressor_room(d, &room), made;

                assert_true(most > 0);
                most = most < cut ? most : cut;
                most = most < n - at ? most : n - at;
                memcpy(room, bytes + at, most);
                decompressor_fed(d, most);
                at += most;
                while ((r = decompressor_next(d, to + *n_to, size, &made)) == 0) {
                        assert_true(made > 0 && made <= size);
                        *n_to += made;
                }
                assert_false(decompressor_has_pending(d));
        }
        return r;
}

static void round_trip(int level, size_t cut, size_t size) {
        static const size_t pieces[] = { 1, PIECE, 3, 5000, PIECE, PIECE, 17 };
        const size_t total = 4 * PIECE;
        uint8_t *bytes = made_bytes(total), *packed = malloc(compressor_room(PIECE)), *back = malloc(total + size);
        Compressor *c = compressor_new(level);
        Decompressor *d = decompressor_new();
        size_t at = 0, n_back = 0, n, sum = 0;

        assert_true(packed && back && c && d);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
                assert_int_equal(compressor_put(c, bytes + at, pieces[i], false, packed, &n), 0);
                at += pieces[i];
                sum += n;
                assert_int_equal(feed(d, packed, n, cut, size, back, &n_back), DECOMPRESSOR_E_NEED_MORE);
                assert_int_equal(n_back, at); /* at once, and not when more comes */
                assert_true(decompressor_is_compressed(d));
        }
        assert_memory_equal(back, bytes, at);
        assert_true(sum < at);
        assert_int_equal(compressor_put(c, NULL, 0, true, packed, &n), 0);
        assert_int_equal(feed(d, packed, n, cut, size, back, &n_back), DECOMPRESSOR_E_NEED_MORE);
        assert_int_equal(n_back, at);
        assert_int_equal(feed(d, (const uint8_t *)"x", 1, cut, size, back, &n_back), DECOMPRESSOR_E_BAD); /* behind its end */
        compressor_free(c);
        decompressor_free(d);
        free(bytes);
        free(packed);
        free(back);
}

static void test_round_trip(void **state) {
        for (int level = 1; level <= COMPRESSION_LEVEL_MAX; level++)
                round_trip(level, SIZE_MAX, 1 << 20);
        round_trip(1, 1, 4096);
        round_trip(1, 1000, 1);
        round_trip(1, SIZE_MAX, 100);
}

static void test_plain(void **state) {
        static const uint8_t bytes[] = { 0x28, 0xb5, 0x2f, 0xfc, 1, 2, 3, 4, 5 };
        Decompressor *d = decompressor_new();
        uint8_t back[2 * sizeof(bytes) + 3];
        size_t n = 0;

        assert_non_null(d);
        assert_int_equal(feed(d, bytes, 3, 1, 3, back, &n), DECOMPRESSOR_E_NEED_MORE);
        assert_int_equal(n, 0); /* it may still be one */
        assert_int_equal(feed(d, bytes + 3, sizeof(bytes) - 3, 2, 3, back, &n), DECOMPRESSOR_E_NEED_MORE);
        assert_int_equal(feed(d, bytes, sizeof(bytes), SIZE_MAX, 3, back, &n), DECOMPRESSOR_E_NEED_MORE);
        assert_int_equal(n, 2 * sizeof(bytes));
        assert_memory_equal(back, bytes, sizeof(bytes));
        assert_memory_equal(back + sizeof(bytes), bytes, sizeof(bytes));
        assert_false(decompressor_is_compressed(d));
        decompressor_free(d);
}

/* One whole stream of another compressor's. */
static uint8_t *packed_by(int window_log, const uint8_t *bytes, size_t n, size_t *ret_n) {
        ZSTD_CCtx *context = ZSTD_createCCtx();
        uint8_t *packed = malloc(ZSTD_compressBound(n));
        ZSTD_inBuffer in = { .src = bytes, .size = n };
        ZSTD_outBuffer out = { .dst = packed, .size = ZSTD_compressBound(n) };

        assert_true(context && packed);
        assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log)));
        assert_false(ZSTD_isError(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush)));
        assert_int_equal(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0);
        ZSTD_freeCCtx(context);
        *ret_n = out.pos;
        return packed;
}

static void test_window(void **state) {
        const size_t total = 16 * PIECE;
        uint8_t *bytes = made_bytes(total), *back = malloc(total + 1000);

        assert_non_null(back);
        for (int log = COMPRESSION_WINDOW_LOG - 1; log <= COMPRESSION_WINDOW_LOG + 1; log++) {
                Decompressor *d = decompressor_new();
                size_t n, n_back = 0;
                uint8_t *packed = packed_by(log, bytes, total, &n);
                bool is_larger = log > COMPRESSION_WINDOW_LOG;

                assert_non_null(d);
                assert_int_equal(feed(d, packed, n, SIZE_MAX, 1000, back, &n_back), is_larger ? DECOMPRESSOR_E_BAD : DECOMPRESSOR_E_NEED_MORE);
                assert_int_equal(n_back, is_larger ? 0 : total);
                decompressor_free(d);
                free(packed);
        }
        free(bytes);
        free(back);
}

/* Whatever byte is wrong: what is said of it may be anything but more than was asked for, and BAD is so for ever. */
static void test_damaged(void **state) {
        uint8_t *bytes = made_bytes(4000), *back = malloc(1 << 20);
        size_t n, n_bad = 0;
        uint8_t *packed = packed_by(COMPRESSION_WINDOW_LOG, bytes, 4000, &n);

        assert_non_null(back);
        for (size_t i = 4; i < n; i++) {
                Decompressor *d = decompressor_new();
                size_t n_back = 0;

                assert_non_null(d);
                packed[i] ^= 0x55;
                if (feed(d, packed, n, SIZE_MAX, 300, back, &n_back) == DECOMPRESSOR_E_BAD) {
                        n_bad++;
                        assert_int_equal(decompressor_next(d, back, 1, &n_back), DECOMPRESSOR_E_BAD);
                        assert_false(decompressor_has_pending(d));
                }
                packed[i] ^= 0x55;
                decompressor_free(d);
        }
        assert_true(n_bad > 0);
        free(bytes);
        free(back);
        free(packed);
}

/* Few bytes that say very many: they come in pieces of what there is room for, and the rest waits. */
static void test_bomb(void **state) {
        const size_t total = (size_t)64 << 20;
        uint8_t *bytes = calloc(1, total), *packed, back[4096], *room;
        Decompressor *d = decompressor_new();
        size_t n, made, sum = 0;

        assert_true(bytes && d);
        packed = packed_by(COMPRESSION_WINDOW_LOG, bytes, total, &n);
        free(bytes);
        assert_true(n <= decompressor_room(d, &room));
        memcpy(room, packed, n);
        decompressor_fed(d, n);
        for (; decompressor_next(d, back, sizeof(back), &made) == 0; sum += made)
                assert_true(made <= sizeof(back));
        assert_int_equal(sum, total);
        assert_false(decompressor_has_pending(d));
        decompressor_free(d);
        free(packed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip), cmocka_unit_test(test_plain), cmocka_unit_test(test_window),
                cmocka_unit_test(test_damaged),    cmocka_unit_test(test_bomb),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
