/* For value.c: the types of keys whose values are texts. Outcomes as of value_decode(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "config/keys.h"
#include "daemon/base/error.h"
#include "daemon/base/index.h"

/* One value of the key's type, as a copy in *to; text is not empty. REFUSED_INVALID, -ENOMEM. */
int path_decode(const Key *k, const char *text, char **to, Explanation *e);
int line_decode(const Key *k, const char *text, char **to, Explanation *e);
int account_decode(const Key *k, const char *text, char **to, Explanation *e);
int name_decode(const Key *k, const char *text, char **to, Explanation *e);
int event_decode(const Key *k, const char *text, char **to, Explanation *e);
int filter_decode(const Key *k, const char *text, char **to, Explanation *e);
int args_decode(const Key *k, const char *text, char **to, Explanation *e);
int cpus_decode(const Key *k, const char *text, char **to, Explanation *e);

/* One more item of a list; known: value.h, or NULL. REFUSED_INVALID, REFUSED_EXHAUSTED: the list is full, -ENOMEM. */
int cgroup_name_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e);
int words_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e);
int accounts_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e);
int counters_add(const Key *k, const char *text, Strings *to, Index *known, Explanation *e);
