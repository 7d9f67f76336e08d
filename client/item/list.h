/* For items: lists whose memory the next item uses again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/wire/wire.h"

/* packed: n of them, where they lie on the wire; those that are asked for are copied to their places in `list`. */
typedef struct Numbers {
        uint64_t *list;
        size_t n, room;
        const uint8_t *packed; /* NULL: all are in `list` */
} Numbers;

/* *list, which has room for *room elements of this size, gets room for `needed`, or more. -ENOMEM */
int list_grow(void *list, size_t *room, size_t needed, size_t size);
/* Makes room for one more than n. -ENOMEM */
int list_reserve(void *list, size_t *room, size_t n, size_t size);
/* Values of a packed list of fixed64, which stay where they are if they are the first. -ENOMEM, PERFD_E_PROTOCOL. */
int numbers_add_packed(Numbers *numbers, const uint8_t *bytes, size_t length);
/* The same, copied. */
int numbers_add_packed_fixed(Numbers *numbers, const uint8_t *bytes, size_t length);
int numbers_add(Numbers *numbers, uint64_t number);
/* All of them are in `list`. -ENOMEM */
int numbers_settle(Numbers *numbers);

static inline void numbers_clear(Numbers *numbers) {
        numbers->n = 0;
        numbers->packed = NULL;
}

/* Room in `list` for all n, so that it stays where it is. -ENOMEM */
static inline int numbers_make_room(Numbers *numbers) {
        return numbers->n <= numbers->room ? 0 : list_grow(&numbers->list, &numbers->room, numbers->n, sizeof(uint64_t));
}

/* n numbers as they are on the wire, of any alignment. */
static inline void numbers_copy(uint64_t *to, const uint8_t *from, size_t n) {
        for (; n >= 2; n -= 2, to += 2, from += 2 * sizeof(uint64_t)) {
                to[0] = wire_get_fixed64(from);
                to[1] = wire_get_fixed64(from + sizeof(uint64_t));
        }
        if (n > 0)
                *to = wire_get_fixed64(from);
}
