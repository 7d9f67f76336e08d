/*
 * TLS 1.3 on a socket that is connected: bytes in and out as by recv(2) and send(2), never waiting, without SIGPIPE. Why it failed is
 * kept for tls-failure.c. It stays where it was opened: OpenSSL points at it.
 */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Tls {
        char *to;   /* where it leads, as the caller wrote it; NULL: there is none */
        char *name; /* of the other host: a DNS name or an address, that its certificate has to be for */
        int fd;     /* not its own */
        SSL_CTX *context;
        SSL *ssl;
        struct bio_method_st *method; /* BIO_METHOD */
        bool reads_want_out; /* an answer of TLS's own waits for room in the socket */
        bool writes_want_in;
        bool has_ended;      /* there are no more bytes to read */
        int error;           /* errno that the socket has ended with, or 0 */
        unsigned long said;  /* OpenSSL's error that it has ended with, or 0 */
        int refusal;         /* X509_V_ERR_*, why the certificate of the other side is refused; X509_V_OK: it is not */
        X509 *refused;       /* which of its chain, or NULL */
} Tls;

#define TLS_NULL ((Tls){ .fd = -1 })

enum {
        TLS_E_AGAIN = 1, /* wait for the events */
        TLS_E_FAILED,
};

/* `context` is taken, also on failure. is_compressed: what comes may be compressed. -ENOMEM. */
int tls_open(Tls *t, SSL_CTX *context, const char *to, const char *name, int fd, bool is_compressed);
/* 0: both sides have shown who they are, as far as this one knows; TLS_E_AGAIN with *ret_events, TLS_E_FAILED. */
int tls_connect(Tls *t, short *ret_events);
/* Whether the other side has agreed to speak perfd's protocol. */
bool tls_has_protocol(const Tls *t);
/*
 * As recv(2) and send(2) without waiting: 0 at the end; -1 with errno EAGAIN, or with ECONNRESET, or EPIPE, for whatever has ended it.
 * What was to be sent is to be sent again.
 */
ssize_t tls_read(Tls *t, uint8_t *to, size_t n);
ssize_t tls_write(Tls *t, const uint8_t *bytes, size_t n);
/* Bytes are there that poll(2) does not know of. */
bool tls_has_pending(const Tls *t);
/*
 * For poll(2): has_out says that there is something to be sent. With bytes pending it is also POLLOUT, for which nobody ever waits long:
 * who only polls reads them at once.
 */
short tls_events(const Tls *t, bool has_out);
/* Says to the other side that it ends, if the socket has room for that. Takes TLS_NULL, and leaves it. */
void tls_close(Tls *t);
