/* For main: argv to a verb with its options and arguments. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * Fills the command line's part of `p`; arguments point into argv, which is put in another order. 0, or PERFCTL_USAGE
 * after a message. Without a verb, p->verb is NULL.
 */
int command_line_parse(Perfctl *p, int argc, char **argv);
#define HELP_WIDTH ((size_t)80) /* no line of help is longer, whatever reads it */

/* "perfctl add EVENT [--name NAME] ..." in malloc'ed memory, to stand behind "usage: "; further lines are indented. */
char *command_line_usage(const Verb *verb);
