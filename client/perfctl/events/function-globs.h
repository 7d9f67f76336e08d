/* For verbs that add events: a pattern of functions of a file, uprobe:libc:mem*, as the functions that it means now. */
#pragma once

#include "client/perfctl/events/event-words.h"

#define FUNCTION_GLOB_MAX 64 /* functions of one pattern: each is a probe, in all programs that use the file */

bool function_globs_is(const char *word);
/* Whether one of these is such a pattern: then the daemon has to be asked. */
bool function_globs_any(const EventWords *words);
/* Each becomes events, in the order of their names. 0, or an exit status after a message: there are none, or too many. */
int function_globs_expand(const Perfctl *p, EventWords *words);
