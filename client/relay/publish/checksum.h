/* CRC-32C, as iSCSI and ext4 have it: it finds each burst of at most 32 bits. Pure, but the first call belongs to one thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of bytes that follow those of which `before` is the checksum; 0, or any number to seed it with, if none do. */
uint32_t checksum(uint32_t before, const uint8_t *bytes, size_t length);
