/* For tests of fleets: messages as relays publish them, out of packets that are made here. */
#pragma once

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "client/perfd.h"
#include "tests/unit/played-stream.h"

#define HEADERS 10

typedef struct Header {
        const char *name;
        char value[80]; /* "": it is not there */
} Header;

typedef struct Played {
        char subject[200];
        Header headers[HEADERS];
        uint8_t *bytes;
        size_t n;
        uint64_t stored;
} Played;

static inline Header *header_of(Played *p, const char *name) {
        Header *h = p->headers;

        while (h->name && strcmp(h->name, name) != 0)
                h++;
        h->name = name;
        return h;
}

static inline void set_header(Played *p, const char *name, const char *value) {
        (void)snprintf(header_of(p, name)->value, sizeof(p->headers[0].value), "%s", value);
}

static inline void set_number(Played *p, const char *name, uint64_t value) {
        (void)snprintf(header_of(p, name)->value, sizeof(p->headers[0].value), "%" PRIu64, value);
}

static inline void set_part(Played *p, unsigned part, unsigned n) {
        (void)snprintf(header_of(p, "Perfd-Part")->value, sizeof(p->headers[0].value), "%u/%u", part, n);
}

static inline const char *get_header(void *userdata, const char *name) {
        Played *p = userdata;

        for (Header *h = p->headers; h->name; h++)
                if (strcmp(h->name, name) == 0)
                        return h->value[0] ? h->value : NULL;
        return NULL;
}

static inline perfd_fleet_message message_of(Played *p) {
        perfd_fleet_message m = PERFD_FLEET_MESSAGE_INIT;

        m.subject = p->subject;
        m.header = get_header;
        m.userdata = p;
        m.bytes = p->bytes;
        m.length = p->n;
        m.stored = p->stored;
        return m;
}

static inline void pack(Played *p, const Perfd__V1__Packet *packet) {
        p->bytes = malloc(perfd__v1__packet__get_packed_size(packet) + 1);
        p->n = perfd__v1__packet__pack(packet, p->bytes);
}

/* All descriptors that streams here have. */
static inline void pack_descriptors(Played *p) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        PlayedDescriptor d;
        Perfd__V1__EventDescriptor *events[] = { &d.message };

        play_descriptor_init(&d, true);
        packet.events = events;
        packet.n_events = 1;
        pack(p, &packet);
}

static inline void digest_of(const Played *p, char ret_text[33]) {
        uint8_t digest[EVP_MAX_MD_SIZE];

        EVP_Digest(p->bytes, p->n, digest, NULL, EVP_sha256(), NULL);
        for (int i = 0; i < 16; i++)
                (void)snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

static inline Played played_descriptors(void) {
        Played p = { .n = 0 };
        char digest[33];

        pack_descriptors(&p);
        digest_of(&p, digest);
        (void)snprintf(p.subject, sizeof(p.subject), "perfd-descriptors.%s.1", digest);
        set_part(&p, 1, 1);
        return p;
}

/* Of host, route execs, epoch, with the packet that it owns from then on. */
static inline Played played_packet(const char *host, uint64_t epoch, Perfd__V1__Packet *packet) {
        Played p = { .stored = 1000 + packet->sequence }, descriptors = played_descriptors();
        char digest[33];

        digest_of(&descriptors, digest);
        free(descriptors.bytes);
        pack(&p, packet);
        (void)snprintf(p.subject, sizeof(p.subject), "perfd.%s.execs", host);
        set_header(&p, "Perfd-Machine", "0123456789abcdef0123456789abcdef");
        set_header(&p, "Perfd-Boot", "fedcba9876543210fedcba9876543210");
        set_number(&p, "Perfd-Epoch", epoch);
        set_number(&p, "Perfd-Sequence", packet->sequence);
        set_number(&p, "Perfd-Items", packet->n_items);
        set_header(&p, "Perfd-Clock", "monotonic");
        set_header(&p, "Perfd-Wall-Offset", "-77");
        set_header(&p, "Perfd-Descriptors", digest);
        set_part(&p, 1, 1);
        return p;
}

static inline Played played_start(const char *host, uint64_t epoch) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        PlayedDescriptor d;
        Perfd__V1__EventDescriptor *events[] = { &d.message };

        play_descriptor_init(&d, true);
        start.clock = (char *)"monotonic";
        start.wall_offset = -5;
        start.host = (char *)"h";
        start.n_cpus = 2;
        p.sequence = 1;
        p.start = &start;
        p.events = events;
        p.n_events = 1;
        return played_packet(host, epoch, &p);
}

static inline Played played_items(const char *host, uint64_t epoch, uint64_t sequence, size_t n) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item items[16], *list[16];

        assert(n <= 16);
        for (size_t i = 0; i < n; i++) {
                play_item_init(&items[i], 100 * sequence + i);
                list[i] = &items[i];
        }
        p.sequence = sequence;
        p.items = list;
        p.n_items = n;
        return played_packet(host, epoch, &p);
}

/* With 20 items that the gap has, and one that comes. */
static inline Played played_gap(const char *host, uint64_t epoch, uint64_t first, uint64_t last, uint64_t sequence) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Item item, *items[] = { &item };

        play_item_init(&item, 100 * sequence);
        gap.reason = (char *)"outbox";
        gap.first_sequence = first;
        gap.last_sequence = last;
        gap.items = 20;
        p.sequence = sequence;
        p.gap = gaps;
        p.n_gap = 1;
        p.items = items;
        p.n_items = 1;
        return played_packet(host, epoch, &p);
}

/* matched = sent + outbox + late */
static inline Played played_end(const char *host, uint64_t epoch, uint64_t sequence, uint64_t sent, uint64_t outbox, uint64_t late) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamEnd end = PERFD__V1__STREAM_END__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;
        Perfd__V1__SubscriberLedger own = PERFD__V1__SUBSCRIBER_LEDGER__INIT, *subscribers[] = { &own };
        Perfd__V1__Count counts[] = { PERFD__V1__COUNT__INIT, PERFD__V1__COUNT__INIT }, *dropped[] = { &counts[0], &counts[1] };

        counts[0].reason = (char *)"outbox";
        counts[0].count = outbox;
        counts[1].reason = (char *)"late";
        counts[1].count = late;
        own.matched = sent + outbox + late;
        own.sent = sent;
        own.dropped = dropped;
        own.n_dropped = 2;
        own.peer = own.order = (char *)"";
        ledger.subscribers = subscribers;
        ledger.n_subscribers = 1;
        end.reason = (char *)"stopped";
        end.ledger = &ledger;
        p.sequence = sequence;
        p.end = &end;
        return played_packet(host, epoch, &p);
}
