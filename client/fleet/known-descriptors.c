/*
 * The descriptors of several streams are mostly the same, and so have the same digest. Those that are kept are those that came last; of
 * a digest that cannot be had it is kept that it cannot, so that it is not asked for with each message.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"

enum { PACKET_EVENTS = 3 }; /* perfd.v1.Packet */

#define DIGEST_BYTES 16

const DescriptorsOfDigest *known_descriptors_find(const KnownDescriptors *k, const char *digest) {
        for (size_t i = 0; i < FLEET_DESCRIPTORS_KEPT && i < k->n; i++)
                if (strcmp(k->kept[i].digest, digest) == 0)
                        return &k->kept[i];
        return NULL;
}

static void want_part(KnownDescriptors *k, uint64_t part) {
        (void)snprintf(k->subject, sizeof(k->subject), "perfd-descriptors.%s.%llu", k->wanted, (unsigned long long)part);
}

void known_descriptors_want(KnownDescriptors *k, const char *digest) {
        packet_parts_deinit(&k->parts);
        (void)snprintf(k->wanted, sizeof(k->wanted), "%s", digest);
        want_part(k, 1);
}

/* Nothing but descriptors, with the digest that they are named by. */
static bool is_what_was_wanted(const KnownDescriptors *k) {
        uint8_t digest[EVP_MAX_MD_SIZE];
        char text[2 * DIGEST_BYTES + 1];
        Wire w = wire_of(k->parts.bytes, k->parts.n);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key != WIRE_KEY(PACKET_EVENTS, WIRE_BYTES))
                        return false;
        if (w.malformed || EVP_Digest(k->parts.bytes, k->parts.n, digest, NULL, EVP_sha256(), NULL) != 1)
                return false;
        for (int i = 0; i < DIGEST_BYTES; i++)
                (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
        return strcmp(text, k->wanted) == 0;
}

/* The bytes are those of `parts`, or there are none. */
static void keep(KnownDescriptors *k, bool is_usable) {
        DescriptorsOfDigest *d = &k->kept[k->n++ % FLEET_DESCRIPTORS_KEPT];

        free(d->bytes);
        *d = (DescriptorsOfDigest){ .bytes = NULL };
        memcpy(d->digest, k->wanted, sizeof(d->digest));
        if (is_usable) {
                d->bytes = k->parts.bytes;
                d->length = k->parts.n;
                k->parts.bytes = NULL;
        }
        packet_parts_deinit(&k->parts);
        k->wanted[0] = '\0';
}

int known_descriptors_take(KnownDescriptors *k, const perfd_fleet_message *m) {
        FleetHead head = { .sequence = 0 };
        bool is_whole = false;
        int r;

        if (!m || strcmp(m->subject, k->subject) != 0 || m->length > FLEET_PACKET_MAX || !fleet_part_read(m, &head.part, &head.n_parts) ||
            head.part != k->parts.part + 1) {
                keep(k, false);
                return 0;
        }
        r = packet_parts_add(&k->parts, &head, m, &is_whole);
        if (r < 0) {
                want_part(k, 1);
                return r;
        }
        if (!is_whole && k->parts.part == head.part) {
                want_part(k, head.part + 1);
                return PERFD_E_NEEDED;
        }
        keep(k, is_whole && is_what_was_wanted(k));
        return 0;
}

void known_descriptors_deinit(KnownDescriptors *k) {
        for (size_t i = 0; i < FLEET_DESCRIPTORS_KEPT; i++)
                free(k->kept[i].bytes);
        packet_parts_deinit(&k->parts);
}
