/* For this folder: a pattern of functions of a file, as "uprobe:/usr/bin/x:do_*". Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/event-name/event-name.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"

#define FUNCTIONS_MAX 64 /* of one pattern: each is a probe, in all programs that use the file */

bool functions_is_glob(const EventName *name);
/*
 * The events that it means now, sorted, each called as it is written with a function in the place of the pattern; to be freed
 * each, and the list. `text`: the event as it was written. client: whose right to read the file it has to be; NULL: perfd's.
 * Refused: "unknown-symbol", "bad-event" for too many, and as probe_file_open(). -ENOMEM.
 */
int functions_match(const EventName *name, const char *text, const Credentials *client, char ***ret_events, size_t *ret_n, Explanation *e);
void functions_free(char **events, size_t n);
