/* For thread bodies and request handlers, which say a thing once: to the journal under systemd, else to stderr. */
#pragma once

#include <syslog.h>

/* priority as in syslog(3); any thread. */
void log_print(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
