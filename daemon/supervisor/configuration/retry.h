/* When pending events (supervisor/events/pending.h) are tried again. Main thread only. */
#pragma once

#include "daemon/supervisor/supervisor.h"

/* Once, before anything is pending. Negative */
int supervisor_start_pending(Supervisor *s);
void supervisor_free_pending(Supervisor *s);
/* Those of the state file, behind a change that has just tried those of the configuration. The timer begins anew. Negative */
int supervisor_retry_kept(Supervisor *s);
