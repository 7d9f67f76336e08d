/* For this folder: the header of a file or a pipe. */
#pragma once

#include "client/recording/reading.h"

/* Finds out what it is. As perfd_recording_open(). */
int recording_begin(perfd_recording *r);
