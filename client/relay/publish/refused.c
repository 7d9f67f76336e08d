#include "client/relay/publish/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/wire/wire.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

/* perfd.v1.Packet: what holds for later packets too */
enum { PACKET_START = 2, PACKET_EVENTS = 3, PACKET_REMOVED = 6, PACKET_TASKS = 8, PACKET_FORGOTTEN_TASKS = 9, PACKET_WALL = 10 };

#define OTHERS_MAX ((size_t)256 << 10) /* bytes */
#define GAP_SIZE_MAX ((size_t)80)      /* bytes of a Packet with one gap: its reason, and five numbers of at most 10 bytes */

typedef struct Bytes {
        uint8_t *bytes;
        size_t n;
} Bytes;

struct RefusedStream {
        RefusedStream *next;
        char subject[sizeof(((Message *)NULL)->subject)];
        uint64_t epoch;
        DroppedPackets dropped;
        Bytes others;     /* fields of packets that are no items and no gaps */
        Bytes parts;      /* of the packet whose later parts are refused too */
        uint64_t rest_of; /* its sequence number; 0: there is none */
        uint64_t carrier; /* number of the message that all this goes with; 0: none yet */
};

static uint64_t number_of(const Message *m, const char *header) {
        const char *value = message_header(m, header);

        return value ? strtoull(value, NULL, 10) : 0;
}

static void bytes_free(Bytes *b) {
        free(b->bytes);
        *b = (Bytes){ .n = 0 };
}

static int bytes_add(Bytes *b, const uint8_t *bytes, size_t n) {
        uint8_t *grown = n > 0 ? realloc(b->bytes, b->n + n) : NULL;

        if (!grown)
                return n > 0 ? error_origin(-ENOMEM) : 0;
        memcpy(grown + b->n, bytes, n);
        b->bytes = grown;
        b->n += n;
        return 0;
}

static void forget(RefusedStream *s) {
        dropped_deinit(&s->dropped);
        s->dropped.reason = "too-long";
        bytes_free(&s->others);
        s->carrier = 0;
}

void refused_deinit(RefusedPackets *p) {
        for (RefusedStream *s = p->first, *next; s; s = next) {
                next = s->next;
                forget(s);
                bytes_free(&s->parts);
                free(s);
        }
        p->first = NULL;
}

static RefusedStream *find(const RefusedPackets *p, const Message *m) {
        for (RefusedStream *s = p->first; s; s = s->next)
                if (strcmp(s->subject, m->subject) == 0)
                        return s;
        return NULL;
}

static bool is_of(const RefusedStream *s, const Message *m) {
        return s && s->epoch == number_of(m, "Perfd-Epoch");
}

/* Of each subject the newest epoch; NULL: no memory. */
static RefusedStream *find_or_add(RefusedPackets *p, const Message *m) {
        RefusedStream *s = find(p, m);

        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s)
                        return NULL;
                memcpy(s->subject, m->subject, sizeof(s->subject));
                s->next = p->first;
                p->first = s;
        }
        if (!is_of(s, m) || (s->carrier != 0 && s->carrier != m->number)) /* what was refused before has gone with another one */
                forget(s);
        s->epoch = number_of(m, "Perfd-Epoch");
        s->carrier = 0;
        return s;
}

bool refused_is_rest(const RefusedPackets *p, const Message *m) {
        const RefusedStream *s = find(p, m);

        return is_of(s, m) && s->rest_of != 0 && s->rest_of == number_of(m, "Perfd-Sequence");
}

static bool holds_later(uint32_t key) {
        return key == WIRE_KEY(PACKET_START, WIRE_BYTES) || key == WIRE_KEY(PACKET_EVENTS, WIRE_BYTES) ||
               key == WIRE_KEY(PACKET_REMOVED, WIRE_BYTES) || key == WIRE_KEY(PACKET_TASKS, WIRE_BYTES) ||
               key >> 3 == PACKET_FORGOTTEN_TASKS || key == WIRE_KEY(PACKET_WALL, WIRE_BYTES);
}

static int keep_others(RefusedStream *s) {
        Wire w = wire_of(s->parts.bytes, s->parts.n);
        WireField f = { .key = 0 };
        const uint8_t *field = w.at;
        int r = 0;

        for (; r == 0 && wire_next(&w, &f); field = w.at)
                if (holds_later(f.key) && s->others.n + (size_t)(w.at - field) <= OTHERS_MAX)
                        r = bytes_add(&s->others, field, (size_t)(w.at - field));
        return r;
}

static int add_packet(RefusedStream *s, const Message *m) {
        const PacketView v = { .sequence = number_of(m, "Perfd-Sequence"), .n_items = number_of(m, "Perfd-Items"),
                               .first = number_of(m, "Perfd-First"), .last = number_of(m, "Perfd-Last") };
        int r = dropped_add(&s->dropped, &v, s->parts.bytes, s->parts.n);

        if (r == 0)
                r = keep_others(s);
        bytes_free(&s->parts);
        return r;
}

int refused_add(RefusedPackets *p, Message *m) {
        uint64_t sequence = number_of(m, "Perfd-Sequence");
        const char *part = message_header(m, "Perfd-Part"), *slash = part ? strchr(part, '/') : NULL;
        RefusedStream *s;
        int r = 0;

        free(m->prefix);
        m->prefix = NULL;
        m->n_all = m->n_gaps = m->n_prefix = 0;
        if (m->is_status || sequence == 0 || !slash)
                return 0;
        s = find_or_add(p, m);
        if (!s)
                return error_origin(-ENOMEM);
        if (s->rest_of != sequence)
                bytes_free(&s->parts);
        if (s->rest_of == sequence || strtoull(part, NULL, 10) == 1) /* else its first parts are with the server: what it had is not known */
                r = bytes_add(&s->parts, m->bytes, m->length);
        s->rest_of = sequence;
        if (r == 0 && strtoull(part, NULL, 10) == strtoull(slash + 1, NULL, 10)) {
                s->rest_of = 0;
                r = add_packet(s, m);
        }
        return r == REFUSED_INVALID ? 0 : r;
}

/* The first part of a packet takes what no other one has taken. */
static bool takes_gaps(const RefusedStream *s, const Message *m) {
        const char *part = message_header(m, "Perfd-Part");

        return !m->prefix && !m->is_status && is_of(s, m) && s->carrier == 0 && part && strncmp(part, "1/", 2) == 0;
}

size_t refused_gaps_size(const RefusedPackets *p, const Message *m) {
        const RefusedStream *s = find(p, m);

        return takes_gaps(s, m) ? s->dropped.n_gaps + (s->dropped.last > 0 ? GAP_SIZE_MAX : 0) : 0;
}

int refused_attach(RefusedPackets *p, Message *m) {
        RefusedStream *s = find(p, m);
        _cleanup_free_ uint8_t *gaps = NULL;
        Bytes all = { .n = 0 };
        size_t n = 0;
        int r;

        if (!takes_gaps(s, m))
                return 0;
        r = dropped_end(&s->dropped, (const uint8_t *)"", 0, &gaps, &n);
        if (r == 0)
                r = bytes_add(&all, gaps, n);
        if (r == 0)
                r = bytes_add(&all, s->others.bytes, s->others.n);
        if (r != 0 || all.n == 0 || s->dropped.is_broken) {
                bytes_free(&all);
                if (s->dropped.is_broken)
                        forget(s);
                return r;
        }
        m->prefix = all.bytes;
        m->n_all = all.n;
        m->n_gaps = n;
        s->carrier = m->number;
        return 0;
}

void refused_forget(RefusedPackets *p, uint64_t number) {
        for (RefusedStream *s = p->first; s; s = s->next)
                if (s->carrier == number)
                        forget(s);
}
