/* For this folder alone: /tmp/perf-PID.map, which JIT compilers write for perf: a line "start size name" for each function, in hex. */
#pragma once

#include "client/symbols/table.h"

/* Lines that are none are stepped over; the text is changed. A later function takes the place of earlier ones. 0; -ENOMEM */
int symbol_table_parse_perf_map(SymbolTable *t, char *text);
