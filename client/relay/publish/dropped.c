/* Fields of protobuf messages that follow each other are one message: the gaps stand in front of a packet that stays as it is. */
#include "client/relay/publish/dropped.h"

#include <stdlib.h>
#include <string.h>

#include "client/wire/wire.h"
#include "daemon/base/error.h"
#include "proto/perfd.pb-c.h"

#define PACKET_GAP 5 /* perfd.v1.Packet */
#define GAPS_MAX ((size_t)256 << 10) /* bytes */

void dropped_deinit(DroppedPackets *d) {
        free(d->gaps);
        *d = (DroppedPackets){ .gaps = NULL };
}

/* `only`: nothing but this gap. */
static int append(DroppedPackets *d, const Perfd__V1__Packet *only) {
        size_t length = perfd__v1__packet__get_packed_size(only);
        uint8_t *grown;

        if (d->n_gaps + length > GAPS_MAX)
                d->is_broken = true;
        if (d->is_broken)
                return 0;
        grown = realloc(d->gaps, d->n_gaps + length);
        if (!grown)
                return error_origin(-ENOMEM);
        d->gaps = grown;
        perfd__v1__packet__pack(only, d->gaps + d->n_gaps);
        d->n_gaps += length;
        return 0;
}

static int append_gap(DroppedPackets *d, Perfd__V1__Gap *gap) {
        Perfd__V1__Packet only = PERFD__V1__PACKET__INIT;

        only.gap = &gap;
        only.n_gap = 1;
        return append(d, &only);
}

/* What was dropped so far is a gap. */
static int finish(DroppedPackets *d) {
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT;
        int r;

        if (d->last == 0)
                return 0;
        gap.reason = (char *)(d->reason ? d->reason : "spool");
        gap.first_sequence = d->first;
        gap.last_sequence = d->last;
        gap.items = d->n_items;
        gap.from = d->from;
        gap.to = d->to;
        r = append_gap(d, &gap);
        if (r == 0)
                d->first = d->last = d->n_items = d->from = d->to = 0;
        return r;
}

static int keep_gap(DroppedPackets *d, const WireField *f) {
        Perfd__V1__Gap *gap = perfd__v1__gap__unpack(NULL, f->length, f->bytes);
        int r;

        if (!gap)
                return REFUSED_INVALID;
        r = finish(d);
        if (r == 0)
                r = append_gap(d, gap);
        perfd__v1__gap__free_unpacked(gap, NULL);
        return r;
}

int dropped_add(DroppedPackets *d, const PacketView *v, const uint8_t *packet, size_t length) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };
        int r = 0;

        while (r == 0 && wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_GAP, WIRE_BYTES))
                        r = keep_gap(d, &f);
        if (r != 0)
                return r;
        d->first = d->last == 0 ? v->sequence : d->first;
        d->last = v->sequence;
        if (v->n_items > 0) {
                d->from = d->n_items == 0 || v->first < d->from ? v->first : d->from;
                d->to = v->last > d->to ? v->last : d->to;
                d->n_items += v->n_items;
        }
        return 0;
}

int dropped_end(DroppedPackets *d, const uint8_t *packet, size_t length, uint8_t **ret, size_t *ret_length) {
        int r = finish(d);
        uint8_t *all;

        if (r != 0)
                return r;
        all = malloc(d->n_gaps + length);
        if (!all)
                return error_origin(-ENOMEM);
        if (d->n_gaps > 0)
                memcpy(all, d->gaps, d->n_gaps);
        memcpy(all + d->n_gaps, packet, length);
        *ret = all;
        *ret_length = d->n_gaps + length;
        return 0;
}
