/* For the command line: what options of perf(1) that perfctl has not are called here. */
#pragma once

#include "client/perfctl/base/verb.h"

/* By its name, or by its letter if that is NULL. NULL: nobody's. */
const char *option_advice_find(const Verb *verb, const char *name, char letter);
