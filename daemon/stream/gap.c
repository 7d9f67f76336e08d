/* Gaps: counted item by item when a packet is dropped, so that nothing is counted for those that are not. */
#include "daemon/stream/gap.h"

#include <errno.h>

#include "proto/perfd.pb-c.h"

void gap_deinit(Gap *g) {
        free(g->counts);
        *g = GAP_NULL;
}

/* Where the event's count is, or would be. */
static size_t gap_place(const Gap *g, uint32_t event) {
        size_t low = 0, high = g->n_counts;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (g->counts[middle].event < event)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int gap_count(Gap *g, uint32_t event, uint64_t items) {
        size_t place = gap_place(g, event);

        if (place < g->n_counts && g->counts[place].event == event) {
                g->counts[place].items += items;
                return 0;
        }
        if (g->n_counts == g->capacity) {
                size_t capacity = g->capacity ? 2 * g->capacity : 4;
                GapCount *counts = reallocarray(g->counts, capacity, sizeof(*counts));

                if (!counts)
                        return -ENOMEM;
                g->counts = counts;
                g->capacity = capacity;
        }
        memmove(g->counts + place + 1, g->counts + place, (g->n_counts - place) * sizeof(*g->counts));
        g->counts[place] = (GapCount){ .event = event, .items = items };
        g->n_counts++;
        return 0;
}

int gap_add(Gap *g, const Packet *p) {
        for (size_t i = 0, run; i < p->n_items; i += run) {
                int r;

                for (run = 1; i + run < p->n_items && p->events[i + run] == p->events[i]; run++)
                        ;
                r = gap_count(g, p->events[i], run);
                if (r < 0)
                        return r;
        }
        g->n_packets++;
        g->n_items += p->n_items;
        if (p->n_items > 0) {
                g->from = p->from < g->from ? p->from : g->from;
                g->to = p->to > g->to ? p->to : g->to;
        }
        return 0;
}

int gap_encode(const Gap *g, uint64_t first_sequence, Packet **ret_packet) {
        _cleanup_free_ Perfd__V1__GapEvent *events = calloc(g->n_counts + 1, sizeof(*events));
        _cleanup_free_ Perfd__V1__GapEvent **pointers = calloc(g->n_counts + 1, sizeof(*pointers));
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Packet message = PERFD__V1__PACKET__INIT;
        Packet *p;

        if (!events || !pointers)
                return -ENOMEM;
        for (size_t i = 0; i < g->n_counts; i++) {
                pointers[i] = &events[i];
                perfd__v1__gap_event__init(&events[i]);
                events[i].event = g->counts[i].event;
                events[i].items = g->counts[i].items;
        }
        gap.reason = (char *)"outbox";
        gap.first_sequence = first_sequence;
        gap.last_sequence = first_sequence + g->n_packets - 1;
        gap.items = g->n_items;
        gap.from = g->n_items ? g->from : 0;
        gap.to = g->to;
        gap.n_events = g->n_counts;
        gap.events = pointers;
        message.n_gap = 1;
        message.gap = gaps;

        p = packet_new(perfd__v1__packet__get_packed_size(&message));
        if (!p)
                return -ENOMEM;
        p->length = perfd__v1__packet__pack(&message, p->bytes);
        p->keep = true;
        packet_seal(p);
        *ret_packet = p;
        return 0;
}
