/* For tls.c: the files of relay.yaml, each checked by itself and with the others. REFUSED_INVALID: said; -ENOMEM. */
#pragma once

#include "client/relay/tls.h"

/* The last error of OpenSSL as text, which empties its queue. */
const char *tls_error_text(char to[static 256]);

int tls_load_certificate(SSL_CTX *context, const RelayConfig *c, ConfigDiagnostics *m);
int tls_load_key(SSL_CTX *context, const RelayConfig *c, ConfigDiagnostics *m);
int tls_load_cas(SSL_CTX *context, const RelayConfig *c, ConfigDiagnostics *m);
int tls_load_crls(SSL_CTX *context, const RelayConfig *c, ConfigDiagnostics *m);
