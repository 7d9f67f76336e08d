/* When pending events (supervisor/events/pending.h) are tried again. Main thread only. */
#pragma once

#include "daemon/supervisor/configuration/configuration.h"

/* Once, before anything is pending. Negative */
int configuration_start_pending(Configuration *s);
void configuration_free_pending(Configuration *s);
/* Those of the state file, behind a change that has just tried those of the configuration. The timer begins again. Negative */
int configuration_retry_persistent(Configuration *s);
/* The same by its timer (CHANGE_PENDING); userdata is the Configuration. */
int configuration_retry_pending(void *userdata);
