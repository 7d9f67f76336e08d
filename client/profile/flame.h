/* Flame graphs: one HTML file, which needs nothing else and asks nobody for anything. */
#pragma once

#include <stdio.h>

#include "client/profile/profile.h"

/*
 * The page of a profile, and of its differences from an older one if that is not NULL. The values of both are the same, else
 * PROFILE_E_UNLIKE. 0; PROFILE_E_*; a negative errno of memory or of the file.
 */
int flame_write(FILE *out, const Profile *p, const Profile *older, const char *title);
