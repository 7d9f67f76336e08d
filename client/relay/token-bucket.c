/* What is not used within an eighth of a second is lost, so that a client that was idle has no burst to wait for others to suffer. */
#include "client/relay/token-bucket.h"

static uint64_t capacity(const TokenBucket *b) {
        return b->rate / 8 > TOKEN_BUCKET_LEAST ? b->rate / 8 : TOKEN_BUCKET_LEAST;
}

void token_bucket_init(TokenBucket *b, uint64_t rate, nsec_t now) {
        *b = (TokenBucket){ .rate = rate, .filled_at = now };
        b->tokens = capacity(b);
}

/* Time that is too short for a byte is kept for the next time; what is counted is rounded up, so that nothing is gained by it. */
static void fill(TokenBucket *b, nsec_t now) {
        nsec_t passed = now > b->filled_at ? now - b->filled_at : 0;
        uint64_t more;

        if (passed >= NSEC_PER_SEC) {
                b->tokens = capacity(b);
                b->filled_at = now;
                return;
        }
        more = (uint64_t)((unsigned __int128)passed * b->rate / NSEC_PER_SEC);
        b->filled_at += (nsec_t)(((unsigned __int128)more * NSEC_PER_SEC + b->rate - 1) / b->rate);
        b->tokens = b->tokens + more > capacity(b) ? capacity(b) : b->tokens + more;
}

size_t token_bucket_peek(TokenBucket *b, size_t most, nsec_t now, nsec_t *ret_wait) {
        *ret_wait = 0;
        if (b->rate == 0)
                return most;
        fill(b, now);
        if (b->tokens < TOKEN_BUCKET_LEAST) {
                *ret_wait = (nsec_t)((unsigned __int128)(TOKEN_BUCKET_LEAST - b->tokens) * NSEC_PER_SEC / b->rate) + 1;
                return 0;
        }
        return most < b->tokens ? most : (size_t)b->tokens;
}

void token_bucket_take(TokenBucket *b, size_t n) {
        if (b->rate != 0)
                b->tokens -= n < b->tokens ? n : b->tokens;
}
