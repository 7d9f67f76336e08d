/* For main.c: `perfd --check-host`. Main thread only. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "daemon/supervisor/requests/requests.h"

/*
 * Prints what this host allows, without a daemon. 0: perfd can run here, REFUSED_UNSUPPORTED: it cannot; negative: it
 * could not be said.
 */
int requests_check_host(const Config *config, bool keep_capabilities, bool json);
