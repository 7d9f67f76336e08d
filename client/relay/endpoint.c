/* Only numbers: what a name means depends on the resolver, and on the moment; and a relay that waits for one serves nobody. */
#include "client/relay/endpoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>

#include "config/text/number.h"
#include "config/text/words.h"

static int refuse_endpoint(const char *text, size_t offset, const char *why, Explanation *e) {
        int r = refuse(e, REFUSED_INVALID, "bad-value", "found %s, %s; expected ADDRESS:PORT, such as 127.0.0.1:7443 or [::1]:7443",
                       QUOTE(text), why);

        if (e)
                e->position = 1 + (unsigned)offset;
        return r;
}

int endpoint_parse(const char *text, Endpoint *ret, Explanation *e) {
        const char *colon = strrchr(text, ':'), *end;
        bool is_bracketed = text[0] == '[';
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->address;
        struct sockaddr_in *in = (struct sockaddr_in *)&ret->address;
        char address[INET6_ADDRSTRLEN];
        uint64_t port;
        size_t n;

        *ret = (Endpoint){ .size = 0 };
        if (!colon || (is_bracketed && colon[-1] != ']'))
                return refuse_endpoint(text, 0, "without a port", e);
        if (!is_bracketed && strchr(text, ':') != colon)
                return refuse_endpoint(text, 0, "in which an IPv6 address is not in brackets", e);
        if (!number_decode(colon + 1, &port, &end) || *end || port == 0 || port > UINT16_MAX)
                return refuse_endpoint(text, (size_t)(colon + 1 - text), "whose port is not a number from 1 to 65535", e);
        n = (size_t)(colon - text) - (is_bracketed ? 2 : 0);
        if (n >= sizeof(address))
                return refuse_endpoint(text, 0, "which is no address", e);
        memcpy(address, text + is_bracketed, n);
        address[n] = '\0';
        if (is_bracketed && inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
                in6->sin6_family = AF_INET6;
                in6->sin6_port = htons((uint16_t)port);
                ret->size = sizeof(*in6);
        } else if (!is_bracketed && inet_pton(AF_INET, address, &in->sin_addr) == 1) {
                in->sin_family = AF_INET;
                in->sin_port = htons((uint16_t)port);
                ret->size = sizeof(*in);
        } else {
                return refuse_endpoint(text, 0, "which is no address in numbers", e);
        }
        return 0;
}

bool endpoint_is_loopback(const Endpoint *e) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&e->address;
        const struct sockaddr_in *in = (const struct sockaddr_in *)&e->address;

        return e->address.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) : ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

void endpoint_text(const struct sockaddr_storage *address, char ret[static ENDPOINT_TEXT_SIZE]) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        char text[INET6_ADDRSTRLEN] = "?";

        if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
                (void)inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, sizeof(text));
                (void)snprintf(ret, ENDPOINT_TEXT_SIZE, "%s:%u", text, ntohs(in6->sin6_port));
        } else if (address->ss_family == AF_INET6) {
                (void)inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
                (void)snprintf(ret, ENDPOINT_TEXT_SIZE, "[%s]:%u", text, ntohs(in6->sin6_port));
        } else {
                (void)inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
                (void)snprintf(ret, ENDPOINT_TEXT_SIZE, "%s:%u", text, ntohs(in->sin_port));
        }
}

bool endpoint_is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
        const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a, *b6 = (const struct sockaddr_in6 *)b;
        const struct sockaddr_in *a4 = (const struct sockaddr_in *)a, *b4 = (const struct sockaddr_in *)b;

        if (a->ss_family != b->ss_family)
                return false;
        if (a->ss_family == AF_INET)
                return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
        if (IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr) || IN6_IS_ADDR_V4MAPPED(&b6->sin6_addr))
                return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
        return memcmp(&a6->sin6_addr, &b6->sin6_addr, 8) == 0;
}
