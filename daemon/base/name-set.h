/*
 * For the supervisor: names that a client lists, each once, and found in constant time. A client may list as many as a request
 * holds, and the same one again and again. Owned copies; one owner, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"
#include "daemon/base/index.h"
#include "daemon/base/strings.h"

typedef struct NameSet {
        Strings list; /* in the order in which they are named first */
        Index index;
} NameSet;

#define NAME_SET_NULL ((NameSet){ .list = STRINGS_NULL })

void name_set_deinit(NameSet *s);
/*
 * Into a null image, to be deinitialised whatever this says. The first `most` different names: *ret_more if there are
 * others. -ENOMEM, and what a checkpoint says.
 */
int name_set_fill(NameSet *s, char *const *names, size_t n, size_t most, bool *ret_more, Explanation *e);
/* *ret_at: where in the list. */
bool name_set_find(const NameSet *s, const char *name, size_t *ret_at);
