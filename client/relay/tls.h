/* The relay's side of TLS: what all connections share, from the files that relay.yaml names. One thread. */
#pragma once

#include <openssl/ssl.h>

#include "client/relay/relay-config.h"

#define TLS_RECORD_MAX 16384 /* bytes of data in one record */

/*
 * TLS 1.3 with a certificate on both sides, for the ALPN protocol perfd/1, and http/1.1 if a client may read metrics. 0;
 * REFUSED_INVALID: each error of each file has been added at the place of its key; negative: -ENOMEM. `c` may be incomplete: then nothing
 * is made, and only what is there is looked at.
 */
int tls_context_new(const RelayConfig *c, ConfigDiagnostics *m, SSL_CTX **ret);

/* What the callbacks of one connection notice: SSL_set_app_data(). */
#define TLS_CHAIN_MAX (64 << 10) /* bytes of certificates that a client may send */
typedef struct TlsPeer {
        char *subject, *serial; /* of its certificate, printable; NULL: it showed none */
        const char *refusal;    /* why it was refused, a stable word; NULL: it was not, or OpenSSL itself has */
        const char *why;        /* the same for people */
} TlsPeer;

void tls_peer_deinit(TlsPeer *p);
/* Sets what is known of a certificate, once. */
void tls_peer_describe(TlsPeer *p, X509 *certificate);

/* A stable word for an error of verification, "revoked". */
const char *tls_verify_reason(int error);
/* What OpenSSL's queue of errors says of a handshake that has failed, which empties it. */
void tls_explain(TlsPeer *p);

/* Of a handshake that is over: whether the client wants metrics, by http/1.1, and not streams. */
bool tls_is_http(const SSL *ssl);
/* Whether the certificate of the peer is valid at this moment, by what the files of `context` say. X509_V_OK or the error. */
int tls_verify_again(SSL *ssl, SSL_CTX *context);
/* When the relay's own certificate ends; 0: it has none, as `context` is NULL. */
time_t tls_own_expiry(const SSL_CTX *context);
/* When the first certificate of the peer's chain ends. */
time_t tls_expiry(SSL *ssl);

/* The names in a certificate, CN and subject alternative names, as text with what they are: "CN", "DNS", "URI", "email". */
typedef struct TlsName {
        const char *kind;
        char *text;
} TlsName;
typedef struct TlsNames {
        TlsName *items;
        size_t n;
        size_t n_left_out; /* names above TLS_NAMES_MAX, which are not read */
} TlsNames;
#define TLS_NAMES_MAX 256
/* -ENOMEM. A name with a zero byte in it is no name. */
int tls_names_read(const X509 *certificate, TlsNames *ret);
void tls_names_deinit(TlsNames *names);
