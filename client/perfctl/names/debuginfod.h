/* For verbs that name frames: --debuginfod, which asks servers for files that are not here. */
#pragma once

#include "client/perfctl/base/perfctl.h"

#define DEBUGINFOD_OPTION { .name = "debuginfod", .help = "files that are not here are asked for at the servers in DEBUGINFOD_URLS" }

/* Nothing, unless the option is given. `p` lives as long as the symbolizer. */
void debuginfod_set_options(const Perfctl *p, perfd_symbolizer_options *options);
