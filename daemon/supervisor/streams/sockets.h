/* For the supervisor: sockets that systemd has made. */
#pragma once

#include <stdbool.h>
#include "daemon/supervisor/streams/streams.h"

/* Says, once, that what the configuration has of this one is not used. */
void streams_say_unused_access(const Streams *s, int fd, bool control);
