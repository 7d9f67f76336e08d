/*
 * OpenSSL writes to sockets by write(2), which raises SIGPIPE in a program that is not ours: so it gets a BIO that sends. Nothing is
 * read ahead: what OpenSSL keeps is the rest of one decrypted record, and SSL_pending() says all of it.
 */
#include "client/connection/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/compression.h"

/* Each with its length before it, the best one first: a server that does not know one takes another. */
static const unsigned char plain_protocol[] = "\x07perfd/1", protocols[] = "\x0c" COMPRESSION_ALPN "\x07perfd/1";

static int socket_write(BIO *b, const char *bytes, int n) {
        Tls *t = BIO_get_data(b);
        ssize_t sent;

        do
                sent = send(t->fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
        BIO_clear_retry_flags(b);
        if (sent < 0 && errno == EAGAIN)
                BIO_set_retry_write(b);
        else if (sent < 0)
                t->error = errno;
        return (int)sent;
}

static int socket_read(BIO *b, char *to, int n) {
        Tls *t = BIO_get_data(b);
        ssize_t received;

        do
                received = recv(t->fd, to, (size_t)n, MSG_DONTWAIT);
        while (received < 0 && errno == EINTR);
        BIO_clear_retry_flags(b);
        if (received < 0 && errno == EAGAIN)
                BIO_set_retry_read(b);
        else if (received < 0)
                t->error = errno;
        t->has_ended |= received == 0;
        return (int)received;
}

static long socket_control(BIO *b, int command, long number, void *pointer) {
        return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method_new(void) {
        BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "a socket, without SIGPIPE");

        if (m && BIO_meth_set_write(m, socket_write) && BIO_meth_set_read(m, socket_read) && BIO_meth_set_ctrl(m, socket_control))
                return m;
        BIO_meth_free(m);
        return NULL;
}

/* Why a certificate is refused, which OpenSSL forgets with the certificate. */
static int on_certificate(int is_good, X509_STORE_CTX *chain) {
        Tls *t = SSL_get_app_data(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
        X509 *certificate = X509_STORE_CTX_get_current_cert(chain);

        if (!is_good && t->refusal == X509_V_OK) {
                t->refusal = X509_STORE_CTX_get_error(chain);
                if (certificate && X509_up_ref(certificate))
                        t->refused = certificate;
        }
        return is_good;
}

/* An address with the interface behind it, as of fe80::1%eth0, is in no certificate. */
static bool is_address(const char *name, char *to, size_t size) {
        size_t n = strcspn(name, "%");
        struct in6_addr address;

        if (n >= size)
                return false;
        memcpy(to, name, n);
        to[n] = '\0';
        return inet_pton(AF_INET, to, &address) == 1 || inet_pton(AF_INET6, to, &address) == 1;
}

/* The name is that of the certificate and, if it is none of an address, what the other side may choose its certificate by. */
static bool set_name(SSL *ssl, const char *name) {
        X509_VERIFY_PARAM *rules = SSL_get0_param(ssl);
        char address[INET6_ADDRSTRLEN];

        X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (is_address(name, address, sizeof(address)))
                return X509_VERIFY_PARAM_set1_ip_asc(rules, address);
        return X509_VERIFY_PARAM_set1_host(rules, name, 0) && SSL_set_tlsext_host_name(ssl, name);
}

static bool set_socket(Tls *t) {
        BIO *b;

        t->method = method_new();
        b = t->method ? BIO_new(t->method) : NULL;
        if (!b)
                return false;
        BIO_set_data(b, t);
        BIO_set_init(b, 1);
        SSL_set_bio(t->ssl, b, b);
        return true;
}

int tls_open(Tls *t, SSL_CTX *context, const char *to, const char *name, int fd, bool is_compressed) {
        size_t n = strlen(name);

        *t = TLS_NULL;
        t->fd = fd;
        t->context = context;
        t->to = strdup(to);
        t->name = strndup(name, n - (n > 1 && name[n - 1] == '.')); /* a full name: certificates have it without its point */
        t->ssl = SSL_new(context);
        if (t->to && t->name && t->ssl && SSL_set_app_data(t->ssl, t) && set_name(t->ssl, t->name) && set_socket(t) &&
            SSL_set_alpn_protos(t->ssl, is_compressed ? protocols : plain_protocol,
                                (is_compressed ? sizeof(protocols) : sizeof(plain_protocol)) - 1) == 0) {
                SSL_set_verify(t->ssl, SSL_VERIFY_PEER, on_certificate);
                SSL_set_mode(t->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
                SSL_set_connect_state(t->ssl);
                return 0;
        }
        ERR_clear_error();
        tls_close(t);
        return -ENOMEM;
}

/* What a call gave that did not succeed: SSL_ERROR_*. */
static int look(Tls *t, int r) {
        int error = SSL_get_error(t->ssl, r);

        if ((error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL) && t->said == 0)
                t->said = ERR_peek_error();
        ERR_clear_error();
        return error;
}

int tls_connect(Tls *t, short *ret_events) {
        int r;

        ERR_clear_error();
        r = SSL_do_handshake(t->ssl);
        if (r == 1)
                return 0;
        switch (look(t, r)) {
        case SSL_ERROR_WANT_READ:
                *ret_events = POLLIN;
                return TLS_E_AGAIN;
        case SSL_ERROR_WANT_WRITE:
                *ret_events = POLLOUT;
                return TLS_E_AGAIN;
        default:
                return TLS_E_FAILED;
        }
}

bool tls_has_protocol(const Tls *t) {
        const unsigned char *chosen;
        unsigned n;

        SSL_get0_alpn_selected(t->ssl, &chosen, &n);
        return (n == plain_protocol[0] && memcmp(chosen, plain_protocol + 1, n) == 0) ||
               (n == protocols[0] && memcmp(chosen, protocols + 1, n) == 0);
}

ssize_t tls_read(Tls *t, uint8_t *to, size_t n) {
        int r;

        ERR_clear_error();
        r = SSL_read(t->ssl, to, n < INT_MAX ? (int)n : INT_MAX);
        t->reads_want_out = false;
        t->writes_want_in = false;
        if (r > 0)
                return r;
        switch (look(t, r)) {
        case SSL_ERROR_WANT_WRITE:
                t->reads_want_out = true;
                errno = EAGAIN;
                return -1;
        case SSL_ERROR_WANT_READ:
                errno = EAGAIN;
                return -1;
        case SSL_ERROR_ZERO_RETURN:
                t->has_ended = true;
                return 0;
        default:
                errno = ECONNRESET;
                return -1;
        }
}

ssize_t tls_write(Tls *t, const uint8_t *bytes, size_t n) {
        int r;

        ERR_clear_error();
        r = SSL_write(t->ssl, bytes, n < INT_MAX ? (int)n : INT_MAX);
        t->writes_want_in = false;
        if (r > 0)
                return r;
        switch (look(t, r)) {
        case SSL_ERROR_WANT_READ:
                t->writes_want_in = true;
                errno = EAGAIN;
                return -1;
        case SSL_ERROR_WANT_WRITE:
                errno = EAGAIN;
                return -1;
        default:
                errno = EPIPE;
                return -1;
        }
}

bool tls_has_pending(const Tls *t) {
        return t->ssl && SSL_pending(t->ssl) > 0;
}

short tls_events(const Tls *t, bool has_out) {
        bool wants_out = (has_out && !t->writes_want_in) || t->reads_want_out || tls_has_pending(t);

        return (short)(POLLIN | (wants_out ? POLLOUT : 0));
}

void tls_close(Tls *t) {
        if (t->ssl && SSL_is_init_finished(t->ssl) && t->said == 0 && t->error == 0)
                (void)SSL_shutdown(t->ssl); /* once: the answer is of no interest */
        ERR_clear_error();
        X509_free(t->refused);
        SSL_free(t->ssl);
        BIO_meth_free(t->method);
        SSL_CTX_free(t->context);
        free(t->name);
        free(t->to);
        *t = TLS_NULL;
}
