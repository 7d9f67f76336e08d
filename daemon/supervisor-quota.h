/* For the supervisor: what clients have added is charged to their uid. Main thread only. */
#pragma once

#include "daemon/supervisor.h"

/* A list, all of it of the same uid, that is not registered yet. Refused: it would be more than the configuration allows. */
int supervisor_check_quota(Supervisor *s, const Registration *list, Explanation *e);
/* The same for more fds of an event. */
int supervisor_check_fd_quota(const Supervisor *s, const Registration *g, size_t n_fds, Explanation *e);
