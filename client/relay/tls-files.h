/*
 * The files of relay.yaml by which somebody shows who he is: of the relay to its clients, and to servers that it publishes to. Each is
 * checked by itself and with the others, in this order. REFUSED_INVALID: said; -ENOMEM. One that is not named (NULL) is skipped.
 */
#pragma once

#include "client/relay/tls.h"

/* The last error of OpenSSL as text, which empties its queue. */
const char *tls_error_text(char to[static 256]);

typedef struct TlsFiles {
        const RelayConfig *config;
        const char *section; /* whose keys these are: "listen", "publish" */
        bool is_client;      /* the relay is, and the other side is a server */
        const char *certificate, *key, *ca, *crl; /* complete paths */
} TlsFiles;

int tls_load_certificate(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m);
int tls_load_key(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m);
int tls_load_cas(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m);
int tls_load_crls(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m);

/* What the file of a key has; the bytes are the caller's to free, also behind an error. */
int tls_file_read(const TlsFiles *f, const char *key, const char *path, ConfigDiagnostics *m, char **ret_bytes, size_t *ret_length);
/* Refuses a file that others can read or change. `what` is to be made anew then. */
int tls_check_secret_mode(const TlsFiles *f, const char *key, const char *path, const char *what, ConfigDiagnostics *m);
/* Where the value of a key of the section stands. */
ConfigPlace tls_file_place(const TlsFiles *f, const char *key);
