/* Messages that are longer than a server takes: the next one of their stream tells of each of them, and has what holds for later items. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/relay/publish/refused.h"
#include "proto/perfd.pb-c.h"

#define ITEMS 40

/* The part of a packet with items, an event of the number of the packet, and a gap before it of the reason, if there is one. */
static Message *make(const char *route, uint64_t epoch, uint64_t sequence, const char *gap_reason, unsigned part, unsigned n_parts) {
        Perfd__V1__EventDescriptor event = PERFD__V1__EVENT_DESCRIPTOR__INIT, *events[] = { &event };
        Perfd__V1__Item items[ITEMS], *list[ITEMS];
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        uint8_t bytes[4096];
        size_t length, begin;
        Message *m;

        for (size_t i = 0; i < ITEMS; i++) {
                perfd__v1__item__init(&items[i]);
                items[i].time = sequence * 1000 + i;
                list[i] = &items[i];
        }
        event.id = (uint32_t)sequence;
        gap.reason = (char *)gap_reason;
        gap.first_sequence = gap.last_sequence = sequence - 1;
        gap.items = 5;
        p.sequence = sequence;
        p.events = events;
        p.items = list;
        p.gap = gaps;
        p.n_events = 1;
        p.n_items = ITEMS;
        p.n_gap = gap_reason != NULL;
        length = perfd__v1__packet__get_packed_size(&p);
        assert_true(length <= sizeof(bytes));
        perfd__v1__packet__pack(&p, bytes);
        begin = length / n_parts * (part - 1);
        m = message_new(bytes + begin, part == n_parts ? length - begin : length / n_parts);
        assert_non_null(m);
        m->number = sequence * 10 + part;
        (void)snprintf(m->subject, sizeof(m->subject), "perfd.web1.%s", route);
        message_add_header(m, "Perfd-Epoch", "%" PRIu64, epoch);
        message_add_header(m, "Perfd-Sequence", "%" PRIu64, sequence);
        message_add_header(m, "Perfd-Items", "%u", ITEMS);
        message_add_header(m, "Perfd-First", "%" PRIu64, sequence * 1000);
        message_add_header(m, "Perfd-Last", "%" PRIu64, sequence * 1000 + ITEMS - 1);
        message_add_header(m, "Perfd-Part", "%u/%u", part, n_parts);
        return m;
}

static void refuse(RefusedPackets *p, Message *m) {
        assert_int_equal(refused_add(p, m), 0);
        message_free(m);
}

/* What is sent before the bytes of the message; NULL: nothing is. */
static Perfd__V1__Packet *prefix_of(RefusedPackets *p, Message *m) {
        assert_int_equal(refused_attach(p, m), 0);
        if (m->n_all == 0)
                return NULL;
        assert_true(m->n_gaps > 0 && m->n_gaps <= m->n_all);
        return perfd__v1__packet__unpack(NULL, m->n_all, m->prefix);
}

static void check_gap(const Perfd__V1__Gap *gap, const char *reason, uint64_t first, uint64_t last, uint64_t items) {
        assert_string_equal(gap->reason, reason);
        assert_int_equal(gap->first_sequence, first);
        assert_int_equal(gap->last_sequence, last);
        assert_int_equal(gap->items, items);
}

/* Neighbours are one gap; gaps that they had stay where they were. */
static void test_gaps(void **state) {
        RefusedPackets p = { .first = NULL };
        Message *next = make("calls", 7, 6, NULL, 1, 1), *other = make("others", 7, 6, NULL, 1, 1), *epoch = make("calls", 8, 6, NULL, 1, 1);
        Perfd__V1__Packet *found;
        size_t size;

        refuse(&p, make("calls", 7, 2, NULL, 1, 1));
        refuse(&p, make("calls", 7, 3, NULL, 1, 1));
        refuse(&p, make("calls", 7, 5, "outbox", 1, 1));
        assert_null(prefix_of(&p, other));
        assert_null(prefix_of(&p, epoch));
        size = refused_gaps_size(&p, next);
        found = prefix_of(&p, next);
        assert_non_null(found);
        assert_in_range(next->n_gaps, size / 2, size); /* what it said it would take, at most */
        assert_int_equal(refused_gaps_size(&p, next), 0);
        assert_int_equal(refused_gaps_size(&p, other), 0);
        assert_int_equal(refused_gaps_size(&p, epoch), 0);
        assert_int_equal(found->n_gap, 3);
        check_gap(found->gap[0], "too-long", 2, 3, 2 * ITEMS);
        check_gap(found->gap[1], "outbox", 4, 4, 5);
        check_gap(found->gap[2], "too-long", 5, 5, ITEMS);
        assert_int_equal(found->gap[0]->from, 2000);
        assert_int_equal(found->gap[0]->to, 3000 + ITEMS - 1);
        assert_int_equal(found->n_items, 0);
        assert_int_equal(found->n_events, 3);
        assert_int_equal(found->events[2]->id, 5);
        perfd__v1__packet__free_unpacked(found, NULL);
        message_free(next);
        message_free(other);
        message_free(epoch);
        refused_deinit(&p);
}

/* One that took them has them again when it is sent again, and no other; what it could not deliver goes with the next one. */
static void test_carrier(void **state) {
        RefusedPackets p = { .first = NULL };
        Message *a = make("calls", 7, 3, NULL, 1, 1), *b = make("calls", 7, 4, NULL, 1, 1), *c = make("calls", 7, 5, NULL, 1, 1);
        Perfd__V1__Packet *found;

        refuse(&p, make("calls", 7, 2, NULL, 1, 1));
        perfd__v1__packet__free_unpacked(prefix_of(&p, a), NULL);
        assert_null(prefix_of(&p, b));
        found = prefix_of(&p, a);
        assert_int_equal(found->n_gap, 1);
        perfd__v1__packet__free_unpacked(found, NULL);
        refuse(&p, a);
        found = prefix_of(&p, b);
        assert_non_null(found);
        assert_int_equal(found->n_gap, 2);
        check_gap(found->gap[0], "too-long", 2, 2, ITEMS);
        check_gap(found->gap[1], "too-long", 3, 3, ITEMS);
        perfd__v1__packet__free_unpacked(found, NULL);
        refused_forget(&p, b->number);
        assert_null(prefix_of(&p, c));
        message_free(b);
        message_free(c);
        refused_deinit(&p);
}

/* All parts of a packet are refused with the first one; if a later one is the first, what the others had is with the server. */
static void test_parts(void **state) {
        RefusedPackets p = { .first = NULL };
        Message *second = make("calls", 7, 2, "outbox", 2, 2), *next = make("calls", 7, 4, NULL, 1, 1);
        Perfd__V1__Packet *found;

        assert_false(refused_is_rest(&p, second));
        refuse(&p, make("calls", 7, 2, "outbox", 1, 2));
        assert_true(refused_is_rest(&p, second));
        assert_false(refused_is_rest(&p, next));
        refuse(&p, second);
        refuse(&p, make("calls", 7, 3, "memory", 2, 2));
        found = prefix_of(&p, next);
        assert_non_null(found);
        assert_int_equal(found->n_gap, 2);
        check_gap(found->gap[0], "outbox", 1, 1, 5);
        check_gap(found->gap[1], "too-long", 2, 3, 2 * ITEMS);
        assert_int_equal(found->n_events, 1);
        perfd__v1__packet__free_unpacked(found, NULL);
        message_free(next);
        refused_deinit(&p);
}

/* What has no sequence number, as descriptors, is in no gap. */
static void test_others(void **state) {
        RefusedPackets p = { .first = NULL };
        Message *m = message_new((const uint8_t *)"", 0);

        (void)snprintf(m->subject, sizeof(m->subject), "perfd-descriptors.0.1");
        refuse(&p, m);
        assert_null(p.first);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_gaps), cmocka_unit_test(test_carrier), cmocka_unit_test(test_parts),
                                            cmocka_unit_test(test_others) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
