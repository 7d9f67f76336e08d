/* For everyone who takes a name from a user. Pure, any thread. */
#pragma once

#include "daemon/base/error.h"

#define NAME_LENGTH_MAX 100 /* bytes */

/*
 * What can be the name of an event, target or group: 1 to 100 bytes of printable ASCII without spaces, commas, quotes,
 * backslashes and what makes a glob, not beginning with '#', '-' or '@', because perfctl's arguments give those a meaning.
 * `what` is for the message, "name". 0 or REFUSED_INVALID "bad-name".
 */
int name_check(const char *what, const char *name, Explanation *e);
