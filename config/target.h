/* For config.c and build*.c alone: a target's life, and where what it names stands. */
#pragma once

#include "config/config.h"
#include "config/keys.h"

/* Accepts a null image. */
void target_deinit(ConfigTarget *t);
/* What was decoded last of key `k` stands there; what was there already has its place. 0 or -ENOMEM. */
int target_add_place(ConfigTarget *t, const Key *k, ConfigPlace at);
