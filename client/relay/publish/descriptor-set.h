/*
 * The descriptors that hold for the items of a stream at one place of it, so that a reader who begins there can be given them. They
 * are named by their digest: equal sets are one. One owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_TEXT_SIZE 33

typedef struct Descriptor {
        uint64_t id;
        uint8_t *bytes;
        size_t length;
} Descriptor;

typedef struct DescriptorSet {
        Descriptor *items; /* by id */
        size_t n;
} DescriptorSet;

void descriptor_set_deinit(DescriptorSet *s);
/* What the packet describes; it holds for the items of this packet. -ENOMEM, which leaves it half done. */
int descriptor_set_add(DescriptorSet *s, const uint8_t *packet, size_t length);
/* What the packet says is removed; its own items may still be of these. */
void descriptor_set_remove(DescriptorSet *s, const uint8_t *packet, size_t length);
/* All of them as the bytes of a Packet, the caller's to free, and its digest, of 128 bits. -ENOMEM. */
int descriptor_set_pack(const DescriptorSet *s, uint8_t **ret_bytes, size_t *ret_length, char ret_digest[DIGEST_TEXT_SIZE]);
