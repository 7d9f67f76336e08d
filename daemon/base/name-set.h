/*
 * The different names in a list of a client, found in constant time. A client can list as many names as fit in a request, including
 * duplicates. The set owns copies; one owner, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"
#include "daemon/base/index.h"
#include "daemon/base/strings.h"

typedef struct NameSet {
        Strings list; /* in the order of their first occurrence */
        Index index;
} NameSet;

#define NAME_SET_NULL ((NameSet){ .list = STRINGS_NULL })

void name_set_deinit(NameSet *s);
/*
 * Fills a null image, which must be deinitialised also after a failure, with the first `most` different names. *ret_more: there are
 * others. -ENOMEM, or the result of a checkpoint.
 */
int name_set_fill(NameSet *s, char *const *names, size_t n, size_t most, bool *ret_more, Explanation *e);
/* *ret_at: the index in the list. */
bool name_set_find(const NameSet *s, const char *name, size_t *ret_at);
