/* For verbs: what a command line counts, which is at least one. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* label: in front of a message, as "--count: ", or "". text: NULL is none. 0, or PERFCTL_USAGE after a message. */
int number_parse(const Perfctl *p, const char *label, const char *text, uint64_t *ret);
