/* Which servers of NATS a relay goes to, whom it trusts there and who it is: what a reload can change while it publishes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/strings.h"

#define ACCESS_DIGEST_SIZE 32

typedef struct PublishAccess {
        Strings servers; /* server-url.h */
        char *ca, *certificate, *key; /* complete paths, or NULL; so also below */
        char *credentials;            /* JWT and seed, as nsc(1) writes them */
        char *user, *password_file;
        char *token_file;
        uint8_t digest[ACCESS_DIGEST_SIZE]; /* of what the files had when they were checked */
} PublishAccess;

/* Into a null image. -ENOMEM: it is one again. */
int publish_access_copy(const PublishAccess *a, PublishAccess *ret);
void publish_access_deinit(PublishAccess *a);
/* Whether both lead to the same, with the same secrets. */
bool publish_access_equal(const PublishAccess *a, const PublishAccess *b);
