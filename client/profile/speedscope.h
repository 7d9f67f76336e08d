/* The file format of https://www.speedscope.app. */
#pragma once

#include <stdio.h>

#include "client/profile/profile.h"

/*
 * One sampled profile for each thread that has a sum of values[value], in the order in which threads came first: stacks, and their
 * sums as weights. 0; a negative errno of memory or of the file.
 */
int speedscope_write(FILE *out, const Profile *p, size_t value, const char *title);
