/* What a route says to perfd. The requests are shorter than what a socket that was just opened takes at once. */
#pragma once

#include "client/relay/publish/publish-config.h"

#define SUBSCRIBE_ID 2

/* Both requests, `hello` and `subscribe`. -errno. */
int subscribe_send(int fd, const PublishRoute *route);
int stop_send(int fd);
