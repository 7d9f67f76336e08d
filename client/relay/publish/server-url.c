#include "client/relay/publish/server-url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT 4222

const char *secret_refuse(const char *text) {
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c == '"' || *c == '\\' || *c < ' ' || *c == 0x7f)
                        return "with a quote, a backslash or a control character, which libnats cannot send";
        return NULL;
}

static int hex_digit(char c) {
        return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* %40 is '@', RFC 3986. */
static const char *take_secret(const char *text, size_t n, char to[static SECRET_SIZE]) {
        size_t length = 0;

        for (size_t i = 0; i < n; i++) {
                int c = (unsigned char)text[i];

                if (c == '%') {
                        int high = i + 2 < n ? hex_digit(text[i + 1]) : -1, low = i + 2 < n ? hex_digit(text[i + 2]) : -1;

                        c = high >= 0 && low >= 0 ? high << 4 | low : 0;
                        i += 2;
                        if (c == 0)
                                return "with '%' and not two hexadecimal digits behind it; '%' itself is %25";
                }
                if (length + 1 >= SECRET_SIZE)
                        return "with a user, password or token that is too long";
                to[length++] = (char)c;
        }
        to[length] = '\0';
        return length == 0 ? "with an empty user, password or token" : secret_refuse(to);
}

static const char *take_user_info(const char *text, size_t n, ServerUrl *u) {
        const char *colon = memchr(text, ':', n), *no;

        u->has_user_info = true;
        if (!colon)
                return take_secret(text, n, u->token);
        no = take_secret(text, (size_t)(colon - text), u->user);
        return no ? no : take_secret(colon + 1, n - (size_t)(colon + 1 - text), u->password);
}

static const char *take_port(const char *text, unsigned *ret) {
        uint64_t port = 0;

        for (const char *c = text; *c; c++)
                if (!isdigit((unsigned char)*c) || (port = 10 * port + (uint64_t)(*c - '0')) > 65535)
                        return "whose port is not a number from 1 to 65535";
        *ret = (unsigned)port;
        return port > 0 ? NULL : "whose port is not a number from 1 to 65535";
}

static bool is_name(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
                        return false;
        return n > 0 && n <= SERVER_HOST_MAX;
}

static const char *take_host(const char *text, ServerUrl *u) {
        const bool is_6 = *text == '[';
        const char *begin = is_6 ? text + 1 : text, *end = is_6 ? strchr(text, ']') : text + strcspn(text, ":"), *behind = end ? end + is_6 : NULL;
        struct in6_addr address;
        size_t n = end ? (size_t)(end - begin) : 0;

        if (n == 0 || n > SERVER_HOST_MAX)
                return "without a host";
        memcpy(u->host, begin, n);
        u->host[n] = '\0';
        if (is_6 ? inet_pton(AF_INET6, u->host, &address) != 1 : !is_name(u->host, n))
                return "whose host is neither a name nor an address";
        u->port = PORT;
        if (*behind == ':')
                return take_port(behind + 1, &u->port);
        return *behind == '\0' ? NULL : "with something behind the host";
}

/* `rest` is what follows the scheme. */
static const char *take_rest(const char *rest, ServerUrl *u) {
        const char *at = strrchr(rest, '@'), *no = at ? take_user_info(rest, (size_t)(at - rest), u) : NULL;

        if (!no)
                no = take_host(at ? at + 1 : rest, u);
        if (!no)
                (void)snprintf(u->address, sizeof(u->address), strchr(u->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
                               u->is_tls ? "tls" : "nats", u->host, u->port);
        return no;
}

const char *server_url_parse(const char *text, ServerUrl *ret) {
        const char *no;

        *ret = (ServerUrl){ .is_tls = strncmp(text, "tls://", strlen("tls://")) == 0 };
        if (!ret->is_tls && strncmp(text, "nats://", strlen("nats://")) != 0)
                no = "which does not begin with nats:// or tls://";
        else
                no = take_rest(strstr(text, "://") + strlen("://"), ret);
        if (no)
                server_url_forget(ret);
        return no;
}

void server_url_forget(ServerUrl *u) {
        OPENSSL_cleanse(u->user, sizeof(u->user));
        OPENSSL_cleanse(u->password, sizeof(u->password));
        OPENSSL_cleanse(u->token, sizeof(u->token));
}

bool server_url_is_loopback(const ServerUrl *u) {
        struct in_addr address;

        return strcmp(u->host, "localhost") == 0 || strcmp(u->host, "::1") == 0 ||
               (inet_pton(AF_INET, u->host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}
