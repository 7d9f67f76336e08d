/*
 * What the daemon has answered: rows, each a plain structure. They are found by functions in the header of their request, and
 * are valid until the result is freed, also after the client. A result belongs to one thread at a time.
 */
#pragma once

#include "declarations.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_result perfd_result;

/* How many were lost for one reason. */
typedef struct perfd_count {
        const char *reason;
        uint64_t count;
} perfd_count;

/* Takes NULL. */
void perfd_result_free(perfd_result *result);

/*
 * perfd_available(): more match than fit in an answer. A ledger: rows of events are left out, because there are more than
 * fit, or because too many events were removed while the stream was there.
 */
bool perfd_result_is_truncated(const perfd_result *result);

/* For __attribute__((cleanup)). */
static inline void perfd_result_freep(perfd_result **result) {
        perfd_result_free(*result);
}

PERFD_END_DECLARATIONS
