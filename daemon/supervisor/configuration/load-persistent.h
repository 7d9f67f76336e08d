/* Persistent events, which outlived the last perfd. Main thread only. */
#pragma once

#include "daemon/supervisor/configuration/configuration.h"

/* Once, behind the configuration's events. What cannot be read or added is said on the log. Negative: memory. */
int configuration_load_persistent(Configuration *s);
void configuration_free_persistent(Configuration *s);
