/* For this folder: records in compressed ones. */
#pragma once

#include "client/recording/reading.h"

/* The most bytes that came out of one compressed record; 0: nothing was compressed */
uint64_t decompress_max(const perfd_recording *r);
/* The records in a compressed one become those that follow. 0; -ENOMEM */
int decompress_feed(perfd_recording *r, uint32_t type, const Bytes *b, uint64_t offset);
/* The next record that is whole. 0; PERFD_E_ENDED: the next one is that of the recording itself; -ENOMEM */
int decompress_next(perfd_recording *r, perfd_recorded **ret);
/* Behind all: what is left of a record is a damage. 0; -ENOMEM */
int decompress_end(perfd_recording *r);
/* Takes NULL. */
void decompress_free(Decompress *d);
