/* For items: lists whose memory the next item uses again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Numbers {
        uint64_t *list;
        size_t n, room;
} Numbers;

/* *list, which has room for *room elements of this size, gets room for `needed`, or more. -ENOMEM */
int list_grow(void *list, size_t *room, size_t needed, size_t size);
/* Makes room for one more than n. -ENOMEM */
int list_reserve(void *list, size_t *room, size_t n, size_t size);
/* Values of a packed list of fixed64. -ENOMEM, PERFD_E_PROTOCOL. */
int numbers_add_packed_fixed(Numbers *numbers, const uint8_t *bytes, size_t length);
int numbers_add(Numbers *numbers, uint64_t number);
