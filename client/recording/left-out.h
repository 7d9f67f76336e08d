/* For this folder and recorded/: records that were found to be damaged one by one, or that perf refuses, and that a repair leaves out. */
#pragma once

#include "client/recording/reading.h"

/*
 * That record, which was read last. Not of another order than that of the recording, in which nothing is repaired, and not inside of
 * compressed ones, which stay as they are. 0; -ENOMEM with a text
 */
int left_out_add(perfd_recording *r, const perfd_recorded *record);
/* One whose type neither the kernel nor perf has: left out, and a damage if no later ones can have it. 0; -ENOMEM with a text */
int left_out_add_unknown(perfd_recording *r, const perfd_recorded *record);
/* What says that samples were left out, as perf counts it: room for the largest. Bytes of it; 0: none were. */
#define LEFT_OUT_MAX 64 /* bytes */
size_t left_out_record(const perfd_recording *r, uint8_t to[static LEFT_OUT_MAX]);
