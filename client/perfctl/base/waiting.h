/* While perfctl waits for a daemon that listens, or whose socket systemd holds, and does not answer yet. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* After a second, one line on stderr: which socket, and where to look. Until waiting_end(). */
void waiting_begin(const Perfctl *p, const char *path);
void waiting_end(void);
