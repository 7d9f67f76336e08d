/* For this folder: side records that are longer than what the kernel wrote. */
#pragma once

#include "client/recording/reading.h"

/* What the kernel has not written at the end of a side record. */
void recording_drop_surplus(const perfd_recording *r, perfd_recorded *record);
