/*
 * Bytes both ways between a stream socket, which is stdin, and TLS 1.3 with certificates on both sides, and nothing else. Two of them
 * are what perfd-relay is compared with, by SSL_write() and SSL_read(); one is the end of its stream.
 *
 *     tls-copy accept FD FOLDER      by TLS for whoever connects first with the socket FD, which listens
 *     tls-copy connect PORT FOLDER   by TLS to 127.0.0.1:PORT
 *
 * FOLDER has ca.crt, and server.crt and server.key, or client.crt and client.key. It ends when either side has.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK (64 << 10)

static uint8_t block[BLOCK];

static _Noreturn void fail(const char *what) {
        perror(what);
        ERR_print_errors_fp(stderr);
        exit(EXIT_FAILURE);
}

static SSL *tls_new(const SSL_METHOD *method, const char *folder, const char *side) {
        char ca[4096], certificate[4096], key[4096];
        SSL_CTX *context = SSL_CTX_new(method);
        SSL *ssl;

        (void)snprintf(ca, sizeof(ca), "%s/ca.crt", folder);
        (void)snprintf(certificate, sizeof(certificate), "%s/%s.crt", folder, side);
        (void)snprintf(key, sizeof(key), "%s/%s.key", folder, side);
        if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1 ||
            SSL_CTX_load_verify_file(context, ca) != 1 || SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
            SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
                fail("tls-copy: files");
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        ssl = SSL_new(context);
        if (!ssl)
                fail("tls-copy: SSL_new");
        return ssl;
}

static int accept_one(int listener) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
                fail("tls-copy: accept");
        return fd;
}

static int connect_to(int port) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                fail("tls-copy: connect");
        return fd;
}

/* false: its end. */
static bool copy_in(SSL *ssl) {
        do {
                int n = SSL_read(ssl, block, sizeof(block));

                if (n <= 0)
                        return SSL_get_error(ssl, n) == SSL_ERROR_WANT_READ;
                for (int written = 0; written < n;) {
                        ssize_t k = send(STDIN_FILENO, block + written, (size_t)(n - written), MSG_NOSIGNAL);

                        if (k < 0)
                                return false;
                        written += (int)k;
                }
        } while (SSL_pending(ssl) > 0);
        return true;
}

static bool copy_out(SSL *ssl) {
        ssize_t n = recv(STDIN_FILENO, block, sizeof(block), 0);

        return n > 0 && SSL_write(ssl, block, (int)n) == n;
}

static void copy(SSL *ssl, int fd) {
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
        bool goes_on = true;

        while (goes_on) {
                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        fail("tls-copy: poll");
                if (fds[1].revents)
                        goes_on = copy_in(ssl);
                if (goes_on && fds[0].revents)
                        goes_on = copy_out(ssl);
        }
        (void)SSL_shutdown(ssl);
}

int main(int argc, char **argv) {
        static const int on = 1;
        bool accepts = argc == 4 && strcmp(argv[1], "accept") == 0;
        SSL *ssl;
        int fd;

        if (!accepts && (argc != 4 || strcmp(argv[1], "connect") != 0)) {
                fputs("usage: tls-copy accept FD FOLDER | connect PORT FOLDER\n", stderr);
                return 2;
        }
        fd = accepts ? accept_one(atoi(argv[2])) : connect_to(atoi(argv[2]));
        ssl = accepts ? tls_new(TLS_server_method(), argv[3], "server") : tls_new(TLS_client_method(), argv[3], "client");
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (!accepts && SSL_set_alpn_protos(ssl, (const unsigned char *)"\x07" "perfd/1", 8) != 0)
                fail("tls-copy: ALPN");
        if (SSL_set_fd(ssl, fd) != 1 || (accepts ? SSL_accept(ssl) : SSL_connect(ssl)) != 1)
                fail("tls-copy: handshake");
        copy(ssl, fd);
        return EXIT_SUCCESS;
}
