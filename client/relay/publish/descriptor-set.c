#include "client/relay/publish/descriptor-set.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/wire/wire.h"
#include "daemon/base/error.h"

/* perfd.v1.Packet; EventDescriptor and EventRef have their id in the same field */
enum { PACKET_EVENTS = 3, PACKET_REMOVED = 6, DESCRIPTOR_ID = 1 };

#define VARINT_MAX 10

static uint64_t read_id(const WireField *f) {
        Wire w = wire_of(f->bytes, f->length);
        WireField part = { .key = 0 };

        while (wire_next(&w, &part))
                if (part.key == WIRE_KEY(DESCRIPTOR_ID, WIRE_VARINT))
                        return part.number;
        return 0;
}

/* Where the id is, or belongs. */
static size_t find(const DescriptorSet *s, uint64_t id) {
        size_t i = s->n;

        while (i > 0 && s->items[i - 1].id >= id)
                i--;
        return i;
}

static void drop(DescriptorSet *s, uint64_t id) {
        size_t i = find(s, id);

        if (i == s->n || s->items[i].id != id)
                return;
        free(s->items[i].bytes);
        memmove(&s->items[i], &s->items[i + 1], (s->n - i - 1) * sizeof(*s->items));
        s->n--;
}

static int add(DescriptorSet *s, const WireField *f) {
        uint8_t *bytes = malloc(f->length > 0 ? f->length : 1);
        uint64_t id = read_id(f);
        Descriptor *grown;
        size_t i;

        if (!bytes)
                return error_origin(-ENOMEM);
        drop(s, id);
        i = find(s, id);
        grown = reallocarray(s->items, s->n + 1, sizeof(*s->items));
        if (!grown) {
                free(bytes);
                return error_origin(-ENOMEM);
        }
        s->items = grown;
        memcpy(bytes, f->bytes, f->length);
        memmove(&grown[i + 1], &grown[i], (s->n - i) * sizeof(*grown));
        grown[i] = (Descriptor){ .id = id, .bytes = bytes, .length = f->length };
        s->n++;
        return 0;
}

int descriptor_set_add(DescriptorSet *s, const uint8_t *packet, size_t length) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };
        int r = 0;

        while (r == 0 && wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_EVENTS, WIRE_BYTES))
                        r = add(s, &f);
        return r;
}

void descriptor_set_remove(DescriptorSet *s, const uint8_t *packet, size_t length) {
        Wire w = wire_of(packet, length);
        WireField f = { .key = 0 };

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(PACKET_REMOVED, WIRE_BYTES))
                        drop(s, read_id(&f));
}

static size_t put_varint(uint8_t *to, uint64_t n) {
        size_t i = 0;

        for (; n >= 0x80; n >>= 7)
                to[i++] = (uint8_t)(n | 0x80);
        to[i++] = (uint8_t)n;
        return i;
}

int descriptor_set_pack(const DescriptorSet *s, uint8_t **ret_bytes, size_t *ret_length, char ret_digest[DIGEST_TEXT_SIZE]) {
        uint8_t digest[EVP_MAX_MD_SIZE], *bytes;
        size_t room = 1, n = 0;

        for (size_t i = 0; i < s->n; i++)
                room += 1 + VARINT_MAX + s->items[i].length;
        bytes = malloc(room);
        if (!bytes)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < s->n; i++) {
                bytes[n++] = WIRE_KEY(PACKET_EVENTS, WIRE_BYTES);
                n += put_varint(bytes + n, s->items[i].length);
                memcpy(bytes + n, s->items[i].bytes, s->items[i].length);
                n += s->items[i].length;
        }
        if (EVP_Digest(bytes, n, digest, NULL, EVP_sha256(), NULL) != 1) {
                free(bytes);
                return error_origin(-ENOMEM);
        }
        for (int i = 0; i < DIGEST_TEXT_SIZE / 2; i++)
                (void)snprintf(ret_digest + 2 * i, 3, "%02x", digest[i]);
        *ret_bytes = bytes;
        *ret_length = n;
        return 0;
}

void descriptor_set_deinit(DescriptorSet *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->items[i].bytes);
        free(s->items);
        *s = (DescriptorSet){ .items = NULL };
}
