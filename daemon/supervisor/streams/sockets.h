/* For the supervisor: sockets that systemd has made. */
#pragma once

#include <stdbool.h>
#include "daemon/supervisor/streams/streams.h"

/* Says, once, that what the configuration has of this one is not used. */
void streams_say_unused_access(const Streams *s, int fd, bool control);
/* What to do for another value of a setting of a socket that systemd has made. False: it is none. */
bool sockets_advise(const Settings *s, const char *pattern, char *to, size_t size);
