/* From the first byte of a client to the rule that says what it may do. */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/relay/connection.h"
#include "config/text/words.h"
#include "daemon/base/error.h"
#include "daemon/base/glob.h"

#define UNMATCHED "no item of 'clients' in relay.yaml matches a name of this certificate"
#define NAMES_SHOWN 4 /* of a certificate that no item matches */

int connection_find_rule(const RelayConfig *config, const X509 *certificate, const RelayRule **ret_rule, char **ret_name) {
        _cleanup_(tls_names_deinit) TlsNames names = { .items = NULL };
        int r = tls_names_read(certificate, &names);

        *ret_rule = NULL;
        for (size_t i = 0; r == 0 && i < config->n_rules; i++)
                for (size_t k = 0; k < names.n; k++) {
                        if (!glob_match(config->rules[i].glob, names.items[k].text))
                                continue;
                        if (asprintf(ret_name, "%s:%s", names.items[k].kind, names.items[k].text) < 0) {
                                *ret_name = NULL;
                                return error_origin(-ENOMEM);
                        }
                        *ret_rule = &config->rules[i];
                        return 0;
                }
        return r;
}

/*
 * The client is told no more than that; the log has the names that were compared, at most so many, and what is nearest to one of them,
 * which is nobody else's to know.
 */
static void log_unmatched(RelayConnection *c, const X509 *certificate) {
        _cleanup_(tls_names_deinit) TlsNames names = { .items = NULL };
        const RelayConfig *config = c->relay->config;
        Nearest near = NEAREST_NULL;
        char text[NAMES_SHOWN * (QUOTE_SIZE + 10) + 400] = "", quote[QUOTE_SIZE];
        char line[sizeof(text) + sizeof(UNMATCHED) + 2];
        size_t n = 0;

        if (tls_names_read(certificate, &names) < 0)
                return; /* it is refused without its names */
        for (size_t i = 0; i < names.n && i < NAMES_SHOWN; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s", i > 0 ? ", " : "", names.items[i].kind,
                                      quote_text(quote, names.items[i].text));
        if (names.n + names.n_left_out > NAMES_SHOWN)
                n += (size_t)snprintf(text + n, sizeof(text) - n, " and %zu more", names.n + names.n_left_out - NAMES_SHOWN);
        if (names.n == 0)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "it has no CN, DNS name, URI or email address");
        if (names.n_left_out > 0)
                n += (size_t)snprintf(text + n, sizeof(text) - n, ", of which only the first %d are compared", TLS_NAMES_MAX);
        for (size_t i = 0; i < config->n_rules; i++)
                for (size_t k = 0; k < names.n; k++)
                        nearest_add(&near, names.items[k].text, config->rules[i].name);
        if (near.word)
                (void)snprintf(text + n, sizeof(text) - n, "; the nearest item is %s", quote_text(quote, near.word));
        (void)snprintf(line, sizeof(line), UNMATCHED ": %s", text);
        connection_log_refusal(c, "not-permitted", line); /* the refusal that follows has no other line */
}

/* Others with the same name by the same rule. */
static uint64_t count_of_name(const RelayConnection *c, const RelayRule *rule, const char *name) {
        uint64_t n = 0;

        for (const RelayConnection *other = c->relay->connections; other; other = other->next)
                n += other != c && other->rule == rule && strcmp(other->name, name) == 0;
        return n;
}

static void admit(RelayConnection *c, const RelayRule *rule, char *name) {
        Relay *r = c->relay;

        c->name = name;
        c->rule = rule;
        r->n_handshakes--;
        relay_count(&r->counters.n_admitted, 1);
        c->expires = tls_expiry(c->ssl);
        token_bucket_init(&c->bucket, rule->bytes_per_second, clock_now(CLOCK_MONOTONIC));
        if (c->is_http)
                connection_serve_metrics(c);
        else
                connection_greet(c);
        (void)relay_set_expiry(r);
}

/* The client has proved who it is. */
static void on_authenticated(RelayConnection *c) {
        X509 *certificate = SSL_get0_peer_certificate(c->ssl);
        _cleanup_free_ char *name = NULL;
        const RelayRule *rule = NULL;
        char text[200];
        int r;

        c->deadline = 0;
        c->is_http = tls_is_http(c->ssl);
        tls_peer_describe(&c->peer, certificate);
        if (c->generation != c->relay->generation) { /* files were read meanwhile */
                if (!c->relay->tls) {
                        connection_refuse(c, PERFD__V1__STATUS__STATUS_DENIED, "not-permitted", "relay.yaml has no 'listen' any more");
                        return;
                }
                r = tls_verify_again(c->ssl, c->relay->tls);
                if (r != X509_V_OK) {
                        connection_refuse(c, PERFD__V1__STATUS__STATUS_DENIED, tls_verify_reason(r), X509_verify_cert_error_string(r));
                        return;
                }
                c->generation = c->relay->generation;
        }
        if (connection_find_rule(c->relay->config, certificate, &rule, &name) < 0) {
                connection_lose(c, "no-memory", strerror(ENOMEM));
                return;
        }
        if (!rule) {
                log_unmatched(c, certificate);
                connection_refuse(c, PERFD__V1__STATUS__STATUS_DENIED, "not-permitted", UNMATCHED);
                return;
        }
        if (c->is_http && !rule->metrics) {
                connection_refuse(c, PERFD__V1__STATUS__STATUS_DENIED, "not-permitted", "its item of 'clients' in relay.yaml has no "
                                  "'metrics: true'");
                return;
        }
        if (count_of_name(c, rule, name) >= rule->connections) {
                (void)snprintf(text, sizeof(text), "%s has %llu connections, which is all that 'clients' in relay.yaml permits",
                               QUOTE(name), (unsigned long long)rule->connections);
                connection_refuse(c, PERFD__V1__STATUS__STATUS_EXHAUSTED, "connections", text);
                return;
        }
        admit(c, rule, TAKE_PTR(name));
}

/* What OpenSSL has to say to it is sent before the socket is closed. */
static void fail(RelayConnection *c) {
        tls_explain(&c->peer);
        connection_log_refusal(c, c->peer.refusal, c->peer.why);
        (void)shutdown(c->fd, SHUT_WR);
        c->state = RELAY_LINGERING;
        c->deadline = clock_now(CLOCK_MONOTONIC) + NSEC_PER_SEC;
        connection_progress(c);
}

void connection_shake_hands(RelayConnection *c) {
        int r, error;

        ERR_clear_error();
        r = SSL_do_handshake(c->ssl);
        if (r == 1) {
                on_authenticated(c);
                return;
        }
        error = SSL_get_error(c->ssl, r);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_CLIENT_HELLO_CB)
                connection_watch(c);
        else
                fail(c);
}
