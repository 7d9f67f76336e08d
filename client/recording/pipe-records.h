/* For this folder: records of perf's own that a pipe has in place of a header. */
#pragma once

#include "client/recording/reading.h"

/* Names for events that have come behind what names them. 0; -ENOMEM, -errno */
int pipe_name_events(perfd_recording *r);
/* EVENT_UPDATE of a file, too. 0; -ENOMEM */
int event_update_take(perfd_recording *r, const Bytes *b);
/* Takes from a pipe's record what a file has in its header. b: behind the header of the record. 0; -ENOMEM */
int pipe_record_take(perfd_recording *r, uint32_t type, const Bytes *b);
/* Bytes behind the record HEADER_TRACING_DATA, which are kept. 0; -ENOMEM */
int pipe_tracing_take(perfd_recording *r, const Bytes *b);
