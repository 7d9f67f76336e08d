/* For config.c and parse/ alone: the life of the rules of access. */
#pragma once

#include "config/config.h"

/* Accepts none. */
void rules_free(Config *c);
