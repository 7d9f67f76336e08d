/* For this folder alone: records of a file that fits in memory, in another order than that of the file. */
#pragma once

#include "client/recording/stored.h"

typedef struct Whole {
        Memory memory; /* entries alone, whose places are in Source.held */
        bool is_read;  /* and sorted */
} Whole;

/* *ret is NULL where it does not fit, or is compressed: limit is in bytes, of everything. 0; -ENOMEM with a text */
int whole_new(perfd_recording *r, size_t limit, Whole **ret);
/* NULL. Takes NULL. */
Whole *whole_free(Whole *w);
/* As order_next(). */
int whole_next(perfd_recording *r, Whole *w, const perfd_recorded **ret);
