/*
 * Samples of external events, which clients emit. The request waits for its answer, for as long as perfd_client_set_timeout()
 * says. ret_result is to be freed by perfd_result_free(); where its rows are of no interest it may be NULL.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "field.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* A value of an external event's field; of the kind that its type asks for ("s32": PERFD_SIGNED). */
typedef struct perfd_external_value {
        perfd_kind kind; /* PERFD_UNSIGNED, _SIGNED, _BOOL: number; PERFD_TEXT, _BYTES: text */
        uint64_t number; /* two's complement if signed */
        perfd_text text;
} perfd_external_value;

/* The time is in ns of the clock that perfd_status_row.clock names, and not 0; tid 0: no task. */
typedef struct perfd_external_sample {
        size_t size;
        const char *event; /* the name of a running external event */
        uint64_t time;
        uint32_t pid, tid, cpu;
        const perfd_external_value *values; /* in the order of the event's fields, all of them */
        size_t n_values;
} perfd_external_sample;

#define PERFD_EXTERNAL_SAMPLE_INIT { .size = sizeof(perfd_external_sample) }

/* What became of the samples of one request. */
typedef struct perfd_emitted_row {
        uint32_t taken;
        uint32_t late; /* of these: too late for streams ordered by time, which had delivered later samples */
        uint32_t lost; /* not taken, because the daemon had no room for them; `batch_pool` in the ledger */
} perfd_emitted_row;

/*
 * Samples of running external events: if one of them is wrong, none is taken. The times are of perfd_status_row.clock, and
 * not 0. What became of them is in perfd_result_emitted(); those that are neither taken nor lost are of disabled events.
 * PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -ENOMEM.
 */
int perfd_emit(perfd_client *client, const perfd_external_sample *samples, size_t n_samples, perfd_result **ret_result);

/* NULL: of another request. */
const perfd_emitted_row *perfd_result_emitted(const perfd_result *result);

PERFD_END_DECLARATIONS
