/* ADDRESS:PORT as it is written, and addresses as text. Pure, any thread. */
#pragma once

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/base/error.h"

typedef struct Endpoint {
        struct sockaddr_storage address;
        socklen_t size;
} Endpoint;

/* "127.0.0.1:7443" or "[::1]:7443"; no names, which could mean several addresses. REFUSED_INVALID, with the position. */
int endpoint_parse(const char *text, Endpoint *ret, Explanation *e);

/* Whether only this host reaches it. */
bool endpoint_is_loopback(const Endpoint *e);

#define ENDPOINT_TEXT_SIZE (INET6_ADDRSTRLEN + IF_NAMESIZE + 16)
/* The same as text. An IPv4 address that came by a socket of IPv6 is written as one of IPv4. */
void endpoint_text(const struct sockaddr_storage *address, char ret[static ENDPOINT_TEXT_SIZE]);
/* Whether both have the same address, whatever their ports are; of IPv6 the first 64 bits, which are those of one host's network. */
bool endpoint_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
