/* For who decides what a client may see: as whom it runs (credentials(7)), as far as files ask for it. */
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
