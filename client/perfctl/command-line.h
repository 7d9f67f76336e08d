/* For main: argv to a verb with its options and arguments. */
#pragma once

#include "client/perfctl/perfctl.h"

/*
 * Fills the command line's part of `p`; arguments point into argv, which is put in another order. 0, or PERFCTL_USAGE
 * after a message. Without a verb, p->verb is NULL.
 */
int command_line_parse(Perfctl *p, int argc, char **argv);
/* "perfctl add EVENT [--name NAME] ..." in malloc'ed memory. */
char *command_line_usage(const Verb *verb);
