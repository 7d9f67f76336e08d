#include "client/nats/delivery.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "$JS.ACK."
#define TOKENS_MAX 12

/* Its tokens behind the prefix, which point into it. 0: more than there may be. */
static unsigned split(const char *at, const char *tokens[static TOKENS_MAX]) {
        unsigned n = 0;

        for (; at && n < TOKENS_MAX; n++) {
                const char *dot = strchr(at, '.');

                tokens[n] = at;
                at = dot ? dot + 1 : NULL;
        }
        return at ? 0 : n;
}

static bool read_name(const char *token, char to[static NATS_NAME_SIZE]) {
        size_t n = strcspn(token, ".");

        if (n == 0 || n >= NATS_NAME_SIZE)
                return false;
        memcpy(to, token, n);
        to[n] = '\0';
        return true;
}

static bool read_number(const char *token, uint64_t *ret) {
        char *end;

        if (!isdigit((unsigned char)*token))
                return false;
        errno = 0;
        *ret = strtoull(token, &end, 10);
        return errno == 0 && (*end == '.' || *end == '\0');
}

/*
 *     $JS.ACK.                      STREAM.CONSUMER.DELIVERED.SEQUENCE.CONSUMER-SEQUENCE.TIME.PENDING
 *     $JS.ACK.DOMAIN.ACCOUNT-HASH.  the same                                                        [.ANYTHING]
 */
bool delivery_read(const char *reply, Delivery *ret) {
        const char *tokens[TOKENS_MAX], **about = tokens;
        unsigned n;

        if (!reply || strncmp(reply, PREFIX, strlen(PREFIX)) != 0)
                return false;
        n = split(reply + strlen(PREFIX), tokens);
        if (n >= 9)
                about += 2;
        else if (n != 7)
                return false;
        return read_name(about[1], ret->consumer) && read_number(about[3], &ret->sequence) && read_number(about[4], &ret->consumer_sequence) &&
               read_number(about[5], &ret->stored) && read_number(about[6], &ret->pending) && ret->sequence > 0 && ret->consumer_sequence > 0;
}
