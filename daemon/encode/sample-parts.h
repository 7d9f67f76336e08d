/* For encode/: the rare parts of samples, and the counters that samples, READ records and periodic reads have alike. */
#pragma once

#include "daemon/model/record.h"

/* Most bytes of one ReadValue with its key and length: four numbers. */
#define READ_VALUE_BOUND ((size_t)46)

/* Most bytes that the parts of a sample add to its item. */
size_t sample_parts_bound(const Record *r);
/* Writes them, fields 40 and up. */
uint8_t *sample_parts_put(uint8_t *to, const Record *r);

/* Values of a message ReadValues, without its own key. */
uint8_t *read_values_put(uint8_t *to, const RecordRead *read);
uint8_t *read_value_put(uint8_t *to, const ReadCount *count);
