/* A socket that listens on an address of relay.yaml. Any thread. */
#pragma once

#include "daemon/base/error.h"

/* REFUSED_INVALID: `address` is none (endpoint.h); REFUSED_DENIED: e says, with the key, why it cannot be had. */
int listening_socket_open(const char *key, const char *address, int *ret, Explanation *e);
