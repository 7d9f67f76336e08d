/*
 * For parse.c and load.c: a configuration under construction, fed file by file. Errors never stop it: it reads on,
 * and finish() gives a Config only if there were none. What does stop it is memory, and a checkpoint that says
 * REFUSED_CANCELLED: all functions here and in walk.h may say both.
 */
#pragma once

#include "config/parse/walk.h"

/* -ENOMEM */
int build_init(Build *b, ConfigDiagnostics *m);
void build_deinit(Build *b);

/* The next file, the first one being the main file. Gives the place of the file as a whole. -ENOMEM. */
int build_add_file(Build *b, const char *path, ConfigPlace *ret);
/* The bytes of the file that was added last. 0, REFUSED_CANCELLED, -ENOMEM. */
int build_feed(Build *b, const char *bytes, size_t length);
/* What can only be seen when all files are there. 0, REFUSED_INVALID, REFUSED_CANCELLED, negative. The build is empty afterwards. */
int build_finish(Build *b, Config **ret);
