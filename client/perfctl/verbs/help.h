/* For main: help without the verb `help`. */
#pragma once

#include <stdio.h>

#include "client/perfctl/base/perfctl.h"

/* All verbs, to stdout, or to `instead`. */
void help_print_all(Perfctl *p, FILE *instead);
int help_print_verb(Perfctl *p, const Verb *verb);
