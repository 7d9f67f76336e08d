/* Packets that are dropped when the relay ends: the last packet tells of each of them, in order, and of the gaps that they told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/relay/publish/dropped.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "proto/perfd.pb-c.h"

/* A packet of two items, and before it a gap of as many packets as `n_missing`, with three items each. */
static void drop(DroppedPackets *d, uint64_t sequence, uint64_t n_missing) {
        Perfd__V1__Item a = PERFD__V1__ITEM__INIT, b = PERFD__V1__ITEM__INIT, *items[] = { &a, &b };
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        uint8_t bytes[512];
        PacketView v;

        p.sequence = sequence;
        a.time = sequence * 100 + 7;
        b.time = sequence * 100;
        p.items = items;
        p.n_items = 2;
        gap.reason = (char *)"outbox";
        gap.first_sequence = sequence - n_missing;
        gap.last_sequence = sequence - 1;
        gap.items = 3 * n_missing;
        p.gap = gaps;
        p.n_gap = n_missing > 0;
        assert_true(perfd__v1__packet__get_packed_size(&p) <= sizeof(bytes));
        perfd__v1__packet__pack(&p, bytes);
        assert_true(packet_view(bytes, perfd__v1__packet__get_packed_size(&p), &v));
        assert_int_equal(dropped_add(d, &v, bytes, perfd__v1__packet__get_packed_size(&p)), 0);
}

/* The packet with the end, which has this number and a gap of its own before it. */
static Perfd__V1__Packet *end(DroppedPackets *d, uint64_t sequence) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT, *found;
        Perfd__V1__StreamEnd e = PERFD__V1__STREAM_END__INIT;
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        _cleanup_free_ uint8_t *all = NULL;
        uint8_t bytes[512];
        size_t length;

        p.sequence = sequence;
        p.end = &e;
        gap.reason = (char *)"memory";
        gap.first_sequence = gap.last_sequence = sequence - 1;
        p.gap = gaps;
        p.n_gap = 1;
        assert_true(perfd__v1__packet__get_packed_size(&p) <= sizeof(bytes));
        perfd__v1__packet__pack(&p, bytes);
        assert_int_equal(dropped_end(d, bytes, perfd__v1__packet__get_packed_size(&p), &all, &length), 0);
        found = perfd__v1__packet__unpack(NULL, length, all);
        assert_non_null(found);
        assert_int_equal(found->sequence, sequence);
        assert_non_null(found->end);
        return found;
}

static void check_gap(const Perfd__V1__Packet *p, size_t i, const char *reason, uint64_t first, uint64_t last, uint64_t items) {
        assert_true(i < p->n_gap);
        assert_string_equal(p->gap[i]->reason, reason);
        assert_int_equal(p->gap[i]->first_sequence, first);
        assert_int_equal(p->gap[i]->last_sequence, last);
        assert_int_equal(p->gap[i]->items, items);
}

static void test_gaps(void **state) {
        DroppedPackets d = { .gaps = NULL };
        Perfd__V1__Packet *p;

        drop(&d, 10, 0);
        drop(&d, 11, 0);
        drop(&d, 15, 3); /* 12 to 14 */
        drop(&d, 16, 0);
        drop(&d, 19, 2);
        p = end(&d, 21);
        assert_int_equal(p->n_gap, 6);
        check_gap(p, 0, "spool", 10, 11, 4);
        assert_int_equal(p->gap[0]->from, 1000);
        assert_int_equal(p->gap[0]->to, 1107);
        check_gap(p, 1, "outbox", 12, 14, 9);
        check_gap(p, 2, "spool", 15, 16, 4);
        check_gap(p, 3, "outbox", 17, 18, 6);
        check_gap(p, 4, "spool", 19, 19, 2);
        check_gap(p, 5, "memory", 20, 20, 0);
        perfd__v1__packet__free_unpacked(p, NULL);
        dropped_deinit(&d);
}

static void test_none(void **state) {
        DroppedPackets d = { .gaps = NULL };
        Perfd__V1__Packet *p = end(&d, 2);

        assert_int_equal(p->n_gap, 1);
        perfd__v1__packet__free_unpacked(p, NULL);
        dropped_deinit(&d);
}

/* More gaps than a packet may have: the stream has no end then, and memory is bounded. */
static void test_too_many(void **state) {
        DroppedPackets d = { .gaps = NULL };
        uint64_t n = 0;

        while (!d.is_broken && n < 100000)
                drop(&d, n += 2, 1);
        assert_true(d.is_broken);
        assert_true(d.n_gaps <= (size_t)256 << 10);
        drop(&d, n + 2, 1);
        dropped_deinit(&d);
}

static void test_malformed(void **state) {
        static const uint8_t bytes[] = { 0x08, 5, 0x2a, 2, 0xff, 0xff }; /* sequence 5, and a gap of two bytes that are none */
        DroppedPackets d = { .gaps = NULL };
        PacketView v = { .sequence = 5 };

        assert_int_equal(dropped_add(&d, &v, bytes, sizeof(bytes)), REFUSED_INVALID);
        dropped_deinit(&d);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gaps),
                cmocka_unit_test(test_none),
                cmocka_unit_test(test_too_many),
                cmocka_unit_test(test_malformed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
