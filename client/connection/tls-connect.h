/* For connecting to tls:// only: the certificates of the caller, and words for what can go wrong on the way. */
#pragma once

#include "client/connection/client.h"

/* tls-connect.c: port is one. Errors as perfd_client_connect_uri(). */
int client_connect_tls(perfd_client *c, const char *uri, const char *host, const char *port);

/* tls-files.c: what perfd_client_set_tls() has named. PERFD_E_INVALID, -ENOMEM. */
int client_load_tls(perfd_client *c, SSL_CTX **ret_context);
