/* For the recorder: sections of a recording that the daemon's host says, and not this one. */
#pragma once

#include "client/perfctl/recorder/recorder.h"

/* TRACING_DATA of the events that are tracepoints, of all again when one begins later; nothing if none is. */
void host_sections_put_tracing(Recorder *r);
/* Of another host, as far as it is known: HOSTNAME, OSRELEASE, ARCH, NRCPUS; and VERSION and CMDLINE of this program. */
void host_sections_put_remote(Recorder *r, const char *const *command_line, size_t n);
