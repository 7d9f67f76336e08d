/*
 * For this folder alone: debug files and programs that are not here, of servers that debuginfod(8) or another one serves. Nothing is asked of
 * anybody unless the options say so.
 */
#pragma once

#include "client/perfd/symbolizer.h"
#include "client/symbols/elf-symbols.h"

typedef struct Debuginfod Debuginfod;

/* NULL and 0: not asked for, or not to be had, which was said. Else -ENOMEM */
int debuginfod_new(const perfd_symbolizer_options *o, Debuginfod **ret);
/* Takes NULL. */
void debuginfod_free(Debuginfod *d);
/* What the servers call the file of that build id: its fd, and its path in the cache (malloc). -1: there is none. d: NULL has none. */
int debuginfod_get(Debuginfod *d, const BuildId *id, bool is_debug, char **ret_path);
/* What came is not that file: no other is asked for. */
void debuginfod_refuse(Debuginfod *d, const BuildId *id, const char *path);
