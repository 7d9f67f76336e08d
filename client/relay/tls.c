/*
 * A client is refused in the handshake where it can be: then it hears it from its own library, whatever it is. One without ALPN is
 * refused before its certificate is asked for, by a look at its first message, because OpenSSL asks the ALPN callback only about
 * clients that have it.
 *
 * Without session tickets, so that nobody comes back without a certificate that is looked at again; and SSL_read() returns behind each
 * message that is no data, so that a client that sends many of them is one that has its turn and then waits.
 */
#include "client/relay/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "client/relay/tls-files.h"
#include "daemon/base/array.h"
#include "daemon/base/error.h"
#include "daemon/base/printable.h"
#include "proto/compression.h"

#define PROTOCOL "\x0c" COMPRESSION_ALPN "\x07" "perfd/1" /* the first one that a client offers too */
#define HTTP "http/1.1"
#define PROTOCOL_OR_HTTP PROTOCOL "\x08" HTTP
#define DEPTH_MAX 8
#define TEXT_SIZE 512 /* of a subject */

void tls_peer_deinit(TlsPeer *p) {
        free(p->subject);
        free(p->serial);
        *p = (TlsPeer){ .subject = NULL };
}

void tls_peer_describe(TlsPeer *p, X509 *certificate) {
        char serial[2 * 20 + 2] = "";
        const ASN1_INTEGER *number;
        BIO *bio;

        if (!certificate || p->subject)
                return;
        bio = BIO_new(BIO_s_mem());
        p->subject = calloc(1, TEXT_SIZE);
        if (bio && p->subject && X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
                (void)BIO_read(bio, p->subject, TEXT_SIZE - 1);
                printable_make(p->subject, TEXT_SIZE);
        }
        BIO_free(bio);
        number = X509_get0_serialNumber(certificate);
        for (int i = 0; i < ASN1_STRING_length(number) && i < 20; i++)
                (void)snprintf(serial + 2 * i, 3, "%02x", ASN1_STRING_get0_data(number)[i]);
        p->serial = strdup(serial);
}

const char *tls_verify_reason(int error) {
        switch (error) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
                return "expired";
        case X509_V_ERR_CERT_NOT_YET_VALID:
                return "not-yet-valid";
        case X509_V_ERR_CERT_REVOKED:
                return "revoked";
        case X509_V_ERR_UNABLE_TO_GET_CRL:
        case X509_V_ERR_CRL_HAS_EXPIRED:
        case X509_V_ERR_CRL_NOT_YET_VALID:
                return "no-crl";
        case X509_V_ERR_INVALID_PURPOSE:
                return "not-for-clients";
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
                return "unknown-ca";
        default:
                return "bad-certificate";
        }
}

/* A switch over reasons of OpenSSL. */
void tls_explain(TlsPeer *p) {
        unsigned long error = ERR_peek_error();

        if (!p->refusal && ERR_GET_LIB(error) == ERR_LIB_SSL) {
                switch (ERR_GET_REASON(error)) {
                case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
                        p->refusal = "no-certificate";
                        p->why = "it has no certificate";
                        break;
                case SSL_R_UNSUPPORTED_PROTOCOL:
                case SSL_R_VERSION_TOO_LOW:
                case SSL_R_NO_SHARED_CIPHER:
                        p->refusal = "tls-version";
                        p->why = "it does not offer TLS 1.3";
                        break;
                case SSL_R_HTTP_REQUEST:
                case SSL_R_HTTPS_PROXY_REQUEST:
                case SSL_R_WRONG_VERSION_NUMBER:
                case SSL_R_BAD_RECORD_TYPE:
                case SSL_R_UNEXPECTED_MESSAGE:
                case SSL_R_LENGTH_MISMATCH:
                case SSL_R_PACKET_LENGTH_TOO_LONG:
                        p->refusal = "not-tls";
                        p->why = "what it sends is not TLS";
                        break;
                case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
                        p->refusal = "own-certificate";
                        p->why = "it says that the relay's own certificate (listen.certificate), or the CA of it, has expired";
                        break;
                case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
                        p->refusal = "own-certificate";
                        p->why = "it says that it does not know the CA of the relay's own certificate (listen.certificate)";
                        break;
                case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
                case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
                case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
                case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
                        p->refusal = "own-certificate";
                        p->why = "it does not accept the relay's own certificate (listen.certificate), which may be for another name than the "
                                 "one that it connects to";
                        break;
                case SSL_R_EXCESSIVE_MESSAGE_SIZE:
                        p->refusal = "too-long";
                        p->why = "a message of its handshake is too long: its certificates may have 65536 bytes together; use one with fewer "
                                 "names";
                        _Static_assert(TLS_CHAIN_MAX == 65536, "the text and relay.yaml(5) say 65536");
                        break;
                case SSL_R_UNEXPECTED_EOF_WHILE_READING:
                        p->refusal = "closed";
                        p->why = "it has closed the connection";
                        break;
                default:
                        break;
                }
        }
        if (!p->refusal) {
                p->refusal = error != 0 ? "handshake" : "closed";
                p->why = error != 0 ? ERR_reason_error_string(error) : "it has closed the connection";
                if (!p->why)
                        p->why = "an error of TLS";
        }
        ERR_clear_error();
}

static int on_verify(int ok, X509_STORE_CTX *store) {
        SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
        TlsPeer *p = SSL_get_app_data(ssl);

        tls_peer_describe(p, X509_STORE_CTX_get0_cert(store));
        if (!ok && !p->refusal) {
                p->refusal = tls_verify_reason(X509_STORE_CTX_get_error(store));
                p->why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
        }
        return ok;
}

static void refuse_protocol(SSL *ssl) {
        TlsPeer *p = SSL_get_app_data(ssl);

        p->refusal = "no-alpn";
        p->why = "it does not offer the ALPN protocol perfd/1";
}

static int on_client_hello(SSL *ssl, int *alert, void *userdata) {
        const unsigned char *extension;
        size_t length;

        if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension, &length) == 1 ||
            SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_versions, &extension, &length) == 0) /* no TLS 1.3: refused for that */
                return SSL_CLIENT_HELLO_SUCCESS;
        refuse_protocol(ssl);
        *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
        return SSL_CLIENT_HELLO_ERROR;
}

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_length, const unsigned char *offered, unsigned length,
                   void *userdata) {
        const char *protocols = userdata;

        if (SSL_select_next_proto((unsigned char **)ret, ret_length, (const unsigned char *)protocols, (unsigned)strlen(protocols), offered,
                                  length) == OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_OK;
        refuse_protocol(ssl);
        return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL_CTX *context_new(const RelayConfig *c) {
        SSL_CTX *context = SSL_CTX_new(TLS_server_method());

        if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1) {
                SSL_CTX_free(context);
                return NULL;
        }
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
        SSL_CTX_set_max_cert_list(context, TLS_CHAIN_MAX);
        SSL_CTX_set_verify_depth(context, DEPTH_MAX);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verify);
        SSL_CTX_set_client_hello_cb(context, on_client_hello, NULL);
        SSL_CTX_set_alpn_select_cb(context, on_alpn, relay_config_has_metrics_clients(c) ? (void *)PROTOCOL_OR_HTTP : (void *)PROTOCOL);
        return context;
}

int tls_context_new(const RelayConfig *c, ConfigDiagnostics *m, SSL_CTX **ret) {
        int (*const load[])(SSL_CTX *, const TlsFiles *, ConfigDiagnostics *) = { tls_load_certificate, tls_load_key, tls_load_cas,
                                                                                  tls_load_crls };
        const TlsFiles files = { .config = c, .section = "listen", .certificate = c->certificate, .key = c->key, .ca = c->ca, .crl = c->crl };
        SSL_CTX *context = context_new(c);
        int r = context ? 0 : error_origin(-ENOMEM), one;

        for (size_t i = 0; i < ARRAY_SIZE(load) && r >= 0; i++) {
                one = load[i](context, &files, m);
                r = one != 0 ? one : r;
        }
        if (r == 0 && !(c->certificate && c->key && c->ca))
                r = REFUSED_INVALID; /* said by the table of keys */
        if (r == 0)
                *ret = context;
        else
                SSL_CTX_free(context);
        return r;
}

bool tls_is_http(const SSL *ssl) {
        const unsigned char *protocol;
        unsigned length;

        SSL_get0_alpn_selected(ssl, &protocol, &length);
        return length == strlen(HTTP) && memcmp(protocol, HTTP, length) == 0;
}

int tls_verify_again(SSL *ssl, SSL_CTX *context) {
        X509_STORE_CTX *store = X509_STORE_CTX_new();
        X509 *certificate = SSL_get0_peer_certificate(ssl);
        int error = X509_V_ERR_OUT_OF_MEM;

        if (store && certificate &&
            X509_STORE_CTX_init(store, SSL_CTX_get_cert_store(context), certificate, SSL_get_peer_cert_chain(ssl)) == 1 &&
            X509_STORE_CTX_set_default(store, "ssl_client") == 1) {
                X509_STORE_CTX_set_depth(store, DEPTH_MAX);
                error = X509_verify_cert(store) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(store);
        }
        X509_STORE_CTX_free(store);
        ERR_clear_error();
        return error;
}

/* 0: it has no time that OpenSSL can read. */
static time_t end_of(const X509 *certificate) {
        struct tm tm;

        return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1 ? timegm(&tm) : 0;
}

time_t tls_own_expiry(const SSL_CTX *context) {
        return context ? end_of(SSL_CTX_get0_certificate(context)) : 0;
}

time_t tls_expiry(SSL *ssl) {
        const STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
        time_t first = 0;

        for (int i = 0; i < sk_X509_num(chain); i++) {
                time_t end = end_of(sk_X509_value(chain, i));

                if (end != 0 && (first == 0 || end < first))
                        first = end;
        }
        return first;
}

static int add_name(TlsNames *names, const char *kind, const ASN1_STRING *string) {
        unsigned char *text = NULL;
        int length = ASN1_STRING_to_UTF8(&text, string), r = 0;
        char *copy;

        if (names->n >= TLS_NAMES_MAX) {
                names->n_left_out++;
        } else if (length > 0 && memchr(text, '\0', (size_t)length) == NULL) {
                copy = strndup((const char *)text, (size_t)length);
                if (copy && ARRAY_ROOM(names->items, names->n))
                        names->items[names->n++] = (TlsName){ .kind = kind, .text = TAKE_PTR(copy) };
                else
                        r = error_origin(-ENOMEM);
                free(copy);
        }
        OPENSSL_free(text);
        return r;
}

int tls_names_read(const X509 *certificate, TlsNames *ret) {
        X509_NAME *subject = X509_get_subject_name(certificate);
        GENERAL_NAMES *others = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
        int r = 0;

        for (int i = -1; r == 0 && (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;)
                r = add_name(ret, "CN", X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
        for (int i = 0; r == 0 && i < sk_GENERAL_NAME_num(others); i++) {
                int type;
                const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(others, i), &type);

                if (type == GEN_DNS || type == GEN_URI || type == GEN_EMAIL)
                        r = add_name(ret, type == GEN_DNS ? "DNS" : type == GEN_URI ? "URI" : "email", value);
        }
        GENERAL_NAMES_free(others);
        return r;
}

void tls_names_deinit(TlsNames *names) {
        for (size_t i = 0; i < names->n; i++)
                free(names->items[i].text);
        free(names->items);
        *names = (TlsNames){ .items = NULL };
}
