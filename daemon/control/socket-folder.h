/* Inside control/: where sockets may be. */
#pragma once

#include "daemon/base/error.h"

/* REFUSED_DENIED: another user could replace what is made at this path. 0 also if the folder is not there. -ENOMEM */
int socket_folder_check(const char *path, Explanation *e);
