/* For arrays that grow by one: room is made in powers of two, so that the count alone says when. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool array_has_room(void **array, size_t n, size_t element_size) {
        void *grown;

        if (n > 0 && (n & (n - 1)) != 0)
                return true;
        if (n > SIZE_MAX / 2)
                return false;
        grown = reallocarray(*array, n > 0 ? n * 2 : 1, element_size);
        if (grown)
                *array = grown;
        return grown != NULL;
}

/* Room for element number n (from 0) of an array that has been grown by this alone; false: no memory. */
#define ARRAY_ROOM(array, n) array_has_room((void **)&(array), (n), sizeof(*(array)))
