/* For this folder: records in the order of the recording. */
#pragma once

#include "client/recording/reading.h"

/* As perfd_recording_next() in the order of the recording. */
int recording_read(perfd_recording *r, const perfd_recorded **ret);
