/* Lists grow to twice of what they are, and never shrink: after the first few items none of them asks for memory. */
#include "client/item/list.h"

#include <errno.h>
#include <stdlib.h>

#include "client/perfd.h"

int list_grow(void *list, size_t *room, size_t needed, size_t size) {
        void **p = list, *bigger;
        size_t n = *room * 2 > needed ? *room * 2 : needed;

        bigger = reallocarray(*p, n, size);
        if (!bigger)
                return -ENOMEM;
        *p = bigger;
        *room = n;
        return 0;
}

int list_reserve(void *list, size_t *room, size_t n, size_t size) {
        return n < *room ? 0 : list_grow(list, room, n + 4, size);
}

static int numbers_reserve(Numbers *numbers, size_t more) {
        if (numbers->room - numbers->n >= more)
                return 0;
        return list_grow(&numbers->list, &numbers->room, numbers->n + more, sizeof(uint64_t));
}

int numbers_add_packed_fixed(Numbers *numbers, const uint8_t *bytes, size_t length) {
        if (length % sizeof(uint64_t) != 0)
                return PERFD_E_PROTOCOL;
        if (length == 0) /* and perhaps no list yet */
                return 0;
        if (numbers_reserve(numbers, length / sizeof(uint64_t)) < 0)
                return -ENOMEM;
        numbers_copy(numbers->list + numbers->n, bytes, length / sizeof(uint64_t));
        numbers->n += length / sizeof(uint64_t);
        return 0;
}

int numbers_settle(Numbers *numbers) {
        if (!numbers->packed)
                return 0;
        if (numbers_make_room(numbers) < 0)
                return -ENOMEM;
        numbers_copy(numbers->list, numbers->packed, numbers->n);
        numbers->packed = NULL;
        return 0;
}

int numbers_add_packed(Numbers *numbers, const uint8_t *bytes, size_t length) {
        if (numbers->n > 0)
                return numbers_settle(numbers) < 0 ? -ENOMEM : numbers_add_packed_fixed(numbers, bytes, length);
        if (length % sizeof(uint64_t) != 0)
                return PERFD_E_PROTOCOL;
        numbers->packed = bytes;
        numbers->n = length / sizeof(uint64_t);
        return 0;
}

int numbers_add(Numbers *numbers, uint64_t number) {
        if (numbers_settle(numbers) < 0 || numbers_reserve(numbers, 1) < 0)
                return -ENOMEM;
        numbers->list[numbers->n++] = number;
        return 0;
}
