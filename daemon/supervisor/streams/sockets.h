/* For the supervisor: sockets that systemd has made. */
#pragma once

#include <stdbool.h>

typedef struct Supervisor Supervisor;

/* Says, once, that what the configuration has of this one is not used. */
void supervisor_say_unused_access(const Supervisor *s, int fd, bool control);
