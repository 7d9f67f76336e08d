/* How many bytes may pass now, if at most so many may in a second. Pure, any thread. */
#pragma once

#include <stddef.h>

#include "daemon/base/clock.h"

#define TOKEN_BUCKET_LEAST ((uint64_t)4096) /* fewer bytes at a time are not worth a wakeup */

typedef struct TokenBucket {
        uint64_t rate; /* bytes a second; 0: unlimited */
        uint64_t tokens;
        nsec_t filled_at;
} TokenBucket;

/* Full at the beginning: an eighth of a second's bytes, or TOKEN_BUCKET_LEAST. */
void token_bucket_init(TokenBucket *b, uint64_t rate, nsec_t now);
/* At most `most`; 0: none now, and *ret_wait says how long. */
size_t token_bucket_peek(TokenBucket *b, size_t most, nsec_t now, nsec_t *ret_wait);
void token_bucket_take(TokenBucket *b, size_t n);
