/* The credentials(7) of a client that determine its access to files. */
#pragma once

#include <stdlib.h>
#include <sys/types.h>

typedef struct Credentials {
        uid_t uid;
        gid_t gid;
        gid_t *groups; /* supplementary ones, malloc */
        size_t n_groups;
} Credentials;

#define CREDENTIALS_NULL ((Credentials){ .groups = NULL })

static inline void credentials_deinit(Credentials *c) {
        free(c->groups);
        *c = CREDENTIALS_NULL;
}
