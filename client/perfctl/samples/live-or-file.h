/* For verbs whose samples are of a recording or of the live host: which of them is meant, where the command line leaves it open. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* An argument that is a recording is none of the events that arguments are: 0, or PERFCTL_USAGE after a message. */
int stray_recording_check(const Perfctl *p);
/* Where nothing says that the live host is meant, a message says so, and what would be read instead. duration: ns */
void live_host_tell(const Perfctl *p, uint64_t duration);
/* After a recording could not be opened: if there is none of this name, but of those that `record --rotate` makes of it, they are named on stderr. */
void rotated_files_tell(const Perfctl *p, const char *path);
