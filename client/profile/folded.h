/* Folded stacks, which flamegraph.pl(1), inferno, speedscope and others read. */
#pragma once

#include <stdio.h>

#include "client/profile/profile.h"

/*
 * One line for each stack that has a sum of values[value]: comm;frame;frame N, from the outermost frame to the innermost, kernel
 * frames with _[k] behind them and inlined ones with _[i], as stackcollapse-perf.pl has them. The order of lines is that in which
 * stacks came first. What separates there is written as another character in names: ; as : and control characters as spaces.
 * 0; PROFILE_E_TOO_MANY; a negative errno of memory or of the file.
 */
int folded_write(FILE *out, const Profile *p, size_t value);
