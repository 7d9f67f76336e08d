/* What a route has to know of a packet of perfd (PROTOCOL.md, Streams), read where it lies. Pure, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PacketView {
        uint64_t sequence;
        uint64_t n_items, first, last; /* times of its items: the lowest and the highest */
        uint64_t n_lost; /* items of its gaps */
        bool has_start, has_wall, has_events, has_removed, has_end;
} PacketView;

/* The packet of a ServerMessage; false: it is another one, or none. */
bool packet_find(const uint8_t *message, size_t length, const uint8_t **ret_packet, size_t *ret_length);
/* False: malformed. */
bool packet_view(const uint8_t *packet, size_t length, PacketView *ret);
/* Calls `take` for each gap of one that is not malformed; the reason has `n` bytes. */
void packet_each_gap(const uint8_t *packet, size_t length, void (*take)(void *userdata, const char *reason, size_t n, uint64_t items),
                     void *userdata);
