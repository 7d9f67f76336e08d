/* For this folder and recorded/: of what event a record is, when it was, and the values of a sample. */
#pragma once

#include "client/recording/reading.h"

/* Of what event a record is. NULL: it has none that is known. */
const Event *recording_event_of(const perfd_recording *r, const perfd_recorded *record);
/* Memory for RECORD_MAX bytes of a sample. 0; -ENOMEM with a text */
int recording_make_scratch(perfd_recording *r);
/* Bytes of the sample id of a record that is no sample; and whether one that ends there names this event. */
size_t record_id_size(uint64_t sample_type);
bool record_is_of(const perfd_recording *r, const perfd_recorded *record, size_t end, const Event *e);
/* ns; 0: the record has none, or it is not known where. Says nothing of what is wrong: whoever decodes the record does. */
uint64_t recording_time(const perfd_recording *r, const perfd_recorded *record);
