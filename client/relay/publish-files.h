/* For reload.c: the files that `publish` names, as they are at this moment. */
#pragma once

#include "client/relay/relay-config.h"

/*
 * Each error of each file is added at the place of its key, and what the files have is digested into publish.access, so that another
 * key or password is a difference. 0, REFUSED_INVALID, -ENOMEM.
 */
int publish_files_check(RelayConfig *c, ConfigDiagnostics *m);
