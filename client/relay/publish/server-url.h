/*
 * A server as `publish.servers` names it: nats:// or tls://, who the relay is there (optional), host and port. What says who it is is
 * taken out, so that neither libnats nor a message has it. Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SERVER_HOST_MAX 253 /* bytes, RFC 1035 */
#define SECRET_SIZE 1024    /* a user, a password or a token, and its zero */

typedef struct ServerUrl {
        bool is_tls;
        bool has_user_info;
        char host[SERVER_HOST_MAX + 1];        /* IPv6: without brackets */
        unsigned port;
        char address[SERVER_HOST_MAX + 32];    /* the same as a URL, without the rest */
        char user[SECRET_SIZE], password[SECRET_SIZE], token[SECRET_SIZE]; /* "": none; a token, or both others */
} ServerUrl;

/* NULL, or what is wrong, to follow "found ...". */
const char *server_url_parse(const char *text, ServerUrl *ret);
/* Overwrites what is secret. */
void server_url_forget(ServerUrl *u);
/* Whether only this host is reached by it; names but localhost could be any. */
bool server_url_is_loopback(const ServerUrl *u);
/* NULL, or what a user, password or token must not have: libnats 3.4 puts it between quotes as it is. */
const char *secret_refuse(const char *text);
