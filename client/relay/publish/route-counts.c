#include "client/relay/publish/route-counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error.h"
#include "proto/perfd.pb-c.h"

void loss_counts_add(LossCounts *l, const char *reason, size_t n, uint64_t items) {
        size_t i = 0;

        n = n < sizeof(l->items[0].reason) ? n : sizeof(l->items[0].reason) - 1;
        while (i < l->n && (strncmp(l->items[i].reason, reason, n) != 0 || l->items[i].reason[n] != '\0'))
                i++;
        if (i == l->n && l->n < LOSS_REASONS_MAX) {
                memcpy(l->items[i].reason, reason, n);
                l->n++;
        }
        l->items[i < l->n ? i : l->n - 1].items += items;
}

uint64_t loss_counts_sum(const LossCounts *l) {
        uint64_t sum = 0;

        for (size_t i = 0; i < l->n; i++)
                sum += l->items[i].items;
        return sum;
}

void route_counts_begin(RouteCounts *c, uint64_t epoch) {
        *c = (RouteCounts){ .epoch = epoch };
}

typedef struct TwoCounts {
        LossCounts *own, *total;
} TwoCounts;

static void take_gap(void *userdata, const char *reason, size_t n, uint64_t items) {
        TwoCounts *both = userdata;

        loss_counts_add(both->own, reason, n, items);
        loss_counts_add(both->total, reason, n, items);
}

/* What came too late for the order of time is in no gap: only the closing ledger has it. */
static int take_end(RouteCounts *c, const uint8_t *packet, size_t length, TwoCounts *both) {
        Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, length, packet);
        const Perfd__V1__Ledger *ledger = p && p->end ? p->end->ledger : NULL;

        if (!p)
                return error_origin(-ENOMEM);
        if (ledger && ledger->n_subscribers > 0) {
                const Perfd__V1__SubscriberLedger *own = ledger->subscribers[ledger->n_subscribers - 1];

                c->matched = own->matched;
                for (size_t i = 0; i < own->n_dropped; i++)
                        if (strcmp(own->dropped[i]->reason, "late") == 0 && own->dropped[i]->count > 0)
                                take_gap(both, "late", strlen("late"), own->dropped[i]->count);
        }
        perfd__v1__packet__free_unpacked(p, NULL);
        return 0;
}

int route_counts_take(RouteCounts *c, const uint8_t *packet, size_t length, const PacketView *v, LossCounts *total) {
        TwoCounts both = { .own = &c->lost, .total = total };

        c->sequence = v->sequence;
        c->matched += v->n_items + v->n_lost;
        if (v->n_lost > 0)
                packet_each_gap(packet, length, take_gap, &both);
        c->has_end = v->has_end;
        return v->has_end ? take_end(c, packet, length, &both) : 0;
}

static uint64_t number_of(const Message *m, const char *header) {
        const char *value = message_header(m, header);

        return value ? strtoull(value, NULL, 10) : 0;
}

/* Others of its packet have to follow. */
static bool has_rest(const Message *m) {
        const char *part = message_header(m, "Perfd-Part"), *slash = part ? strchr(part, '/') : NULL;

        return !slash || strtoull(part, NULL, 10) != strtoull(slash + 1, NULL, 10);
}

uint64_t route_counts_store(RouteCounts *c, const Message *m) {
        uint64_t items = number_of(m, "Perfd-Items"), sequence = number_of(m, "Perfd-Sequence");

        if (has_rest(m))
                return 0;
        if (number_of(m, "Perfd-Epoch") != c->epoch)
                return items;
        c->published += items;
        if (sequence > c->stored) {
                c->stored = sequence;
                c->stored_matched = number_of(m, "Perfd-Matched");
        }
        return items;
}

void route_counts_refuse(RouteCounts *c, const Message *m, LossCounts *total) {
        uint64_t items = number_of(m, "Perfd-Items");

        if (has_rest(m))
                return;
        loss_counts_add(total, "too-long", strlen("too-long"), items);
        if (number_of(m, "Perfd-Epoch") == c->epoch)
                loss_counts_add(&c->lost, "too-long", strlen("too-long"), items);
}

uint64_t route_counts_held(const RouteCounts *c) {
        uint64_t known = c->published + loss_counts_sum(&c->lost);

        return c->matched > known ? c->matched - known : 0;
}
