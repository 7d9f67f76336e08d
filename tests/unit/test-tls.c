/*
 * A client by TLS as its caller's loop sees it: what it is to wait for, although OpenSSL has bytes of its own, and what it fails with.
 * The server is a child of the test, with the same certificate on both sides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "client/perfd.h"
#include "tests/unit/played-stream.h"

#define WAIT_MS 60000

static char folder[] = "/tmp/perfd-test.XXXXXX";

typedef struct Seen {
        unsigned starts, items, ends;
} Seen;

static void on_start(void *userdata, const perfd_start *start) {
        ((Seen *)userdata)->starts++;
}

static void on_item(void *userdata, const perfd_item *item) {
        ((Seen *)userdata)->items++;
}

static void on_end(void *userdata, const perfd_end *end) {
        ((Seen *)userdata)->ends++;
}

/* --- the certificate: of its own CA, for 127.0.0.1 --- */

static void write_file(const char *name, X509 *certificate, EVP_PKEY *key) {
        char path[64];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fchmod(fileno(f), 0600), 0);
        assert_int_equal(certificate ? PEM_write_X509(f, certificate) : PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
        assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *x = X509_new();
        X509_NAME *name = X509_get_subject_name(x);
        X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1");

        if (!mkdtemp(folder))
                return -1;
        assert_int_equal(X509_set_version(x, 2), 1);
        assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 1), 1);
        assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x), -3600));
        assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x), 3600));
        assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"one", -1, -1, 0), 1);
        assert_int_equal(X509_set_issuer_name(x, name), 1);
        assert_int_equal(X509_set_pubkey(x, key), 1);
        assert_int_equal(X509_add_ext(x, names, -1), 1);
        assert_int_not_equal(X509_sign(x, key, EVP_sha256()), 0);
        write_file("ca.crt", x, NULL);
        write_file("client.crt", x, NULL);
        write_file("client.key", NULL, key);
        X509_EXTENSION_free(names);
        X509_free(x);
        EVP_PKEY_free(key);
        return 0;
}

static int tear_down(void **state) {
        static const char *const names[] = { "ca.crt", "client.crt", "client.key" };
        char path[64];

        for (size_t i = 0; i < 3; i++) {
                (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
                (void)unlink(path);
        }
        return rmdir(folder);
}

/* --- the server --- */

typedef struct Server {
        SSL *ssl;
        int frames[2]; /* what is played goes in at 1, and out at 0 */
        int go;        /* a byte comes when the client is ready for the next scene */
} Server;

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in, unsigned in_n, void *userdata) {
        *out = in + 1;
        *n = in[0];
        return in_n == 8 && memcmp(in, "\7perfd/1", 8) == 0 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void must(bool is_so) {
        if (!is_so) {
                ERR_print_errors_fp(stderr);
                _exit(1);
        }
}

static void accept_client(Server *s, int listener) {
        SSL_CTX *context = SSL_CTX_new(TLS_server_method());
        char path[64];

        (void)snprintf(path, sizeof(path), "%s/client.crt", folder);
        must(SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) == 1 && SSL_CTX_load_verify_file(context, path) == 1);
        (void)snprintf(path, sizeof(path), "%s/client.key", folder);
        must(SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
        s->ssl = SSL_new(context);
        must(SSL_set_fd(s->ssl, accept(listener, NULL, NULL)) == 1 && SSL_accept(s->ssl) == 1);
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, s->frames) == 0);
}

/* All that was played, in one record. */
static void send_played(Server *s) {
        uint8_t bytes[1 << 14];
        ssize_t n = recv(s->frames[0], bytes, sizeof(bytes), MSG_DONTWAIT);

        must(n > 0 && n < (ssize_t)sizeof(bytes) && SSL_write(s->ssl, bytes, (int)n) == n);
}

static Perfd__V1__Request__BodyCase next_request(Server *s) {
        uint8_t bytes[4096];
        size_t length = 0;
        Perfd__V1__Request *request;
        Perfd__V1__Request__BodyCase body;

        must(SSL_read(s->ssl, bytes, 4) == 4);
        for (int i = 0; i < 4; i++)
                length |= (size_t)bytes[i] << (8 * i);
        must(length < sizeof(bytes) && SSL_read(s->ssl, bytes, (int)length) == (int)length);
        request = perfd__v1__request__unpack(NULL, length, bytes);
        must(request);
        body = request->body_case;
        play_request_free(request);
        return body;
}

static void wait_for_go(Server *s) {
        char byte;

        must(read(s->go, &byte, 1) == 1);
}

/* The answer to Subscribe, and all that follows it, come in one record; then keys are renewed in both directions. */
static void serve_stream(Server *s, int listener) {
        accept_client(s, listener);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_HELLO);
        play_hello(s->frames[1], 1);
        send_played(s);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        play_ok(s->frames[1], 2);
        play_start(s->frames[1]);
        play_items(s->frames[1], 2, 100, 3);
        send_played(s);
        wait_for_go(s);
        must(SSL_key_update(s->ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        play_items(s->frames[1], 3, 200, 2);
        send_played(s);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_STOP);
        play_items(s->frames[1], 4, 300, 1);
        send_played(s);
        must(SSL_shutdown(s->ssl) == 0);
}

/* Why it ends, in the words of a relay. */
static void serve_last_word(Server *s, int listener) {
        Perfd__V1__Response last = PERFD__V1__RESPONSE__INIT;

        accept_client(s, listener);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_HELLO);
        play_hello(s->frames[1], 1);
        send_played(s);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        play_ok(s->frames[1], 2);
        play_start(s->frames[1]);
        send_played(s);
        wait_for_go(s);
        last.status = PERFD__V1__STATUS__STATUS_DENIED;
        last.reason = (char *)"revoked";
        last.message = (char *)"the certificate was revoked";
        play_response(s->frames[1], &last);
        send_played(s);
}

/* Bytes that no key has made, instead of a record. */
static void serve_damage(Server *s, int listener) {
        accept_client(s, listener);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_HELLO);
        play_hello(s->frames[1], 1);
        send_played(s);
        must(next_request(s) == PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        play_ok(s->frames[1], 2);
        send_played(s);
        wait_for_go(s);
        must(write(SSL_get_fd(s->ssl), "\x17\3\3\0\x20 these are no bytes of that key", 5 + 32) == 5 + 32);
}

typedef struct Line {
        perfd_client *client;
        Seen seen;
        pid_t child;
        int go;
        char uri[64];
} Line;

static int listen_somewhere(char *uri, size_t size) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        (void)snprintf(uri, size, "tls://127.0.0.1:%d", ntohs(address.sin_port));
        return fd;
}

static void line_init(Line *l, void (*serve)(Server *, int)) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        int listener, go[2];

        *l = (Line){ .client = perfd_client_new("test 1") };
        listener = listen_somewhere(l->uri, sizeof(l->uri));
        assert_int_equal(pipe(go), 0);
        l->child = fork();
        if (l->child == 0) {
                Server s = { .go = go[0] };

                close(go[1]);
                serve(&s, listener);
                _exit(0);
        }
        close(go[0]);
        close(listener);
        l->go = go[1];
        perfd_client_set_timeout(l->client, WAIT_MS);
        assert_int_equal(perfd_client_set_tls(l->client, folder), 0);
        assert_int_equal(perfd_client_connect_uri(l->client, l->uri), 0);
        callbacks.start = on_start;
        callbacks.item = on_item;
        callbacks.end = on_end;
        assert_int_equal(perfd_subscribe(l->client, &subscription, &callbacks, &l->seen), 0);
}

static void line_deinit(Line *l) {
        int status;

        perfd_client_free(l->client);
        close(l->go);
        assert_int_equal(waitpid(l->child, &status, 0), l->child);
        assert_int_equal(status, 0);
}

/* Whether it is ready for this now. */
static bool is_ready(Line *l, short events, int milliseconds) {
        struct pollfd fd = { .fd = perfd_client_fd(l->client), .events = events };

        return poll(&fd, 1, milliseconds) == 1;
}

/* As a program does that only polls; until it has failed or there are so many items. */
static int process(Line *l, unsigned n_items) {
        int r = 0;

        while (r == 0 && l->seen.items < n_items) {
                assert_true(is_ready(l, perfd_client_events(l->client), WAIT_MS));
                r = perfd_client_process(l->client);
        }
        return r;
}

/* --- */

/* What came in one record with an answer is in OpenSSL, where poll(2) does not see it. */
static void test_bytes_that_are_decrypted(void **state) {
        Line l;

        line_init(&l, serve_stream);
        assert_false(is_ready(&l, POLLIN, 0));
        assert_int_equal(perfd_client_events(l.client), POLLIN | POLLOUT);
        assert_int_equal(perfd_client_due(l.client), 0);
        assert_int_equal(perfd_client_wait(l.client), 0);
        assert_int_equal(perfd_client_process(l.client), 0);
        assert_int_equal(l.seen.starts, 1);
        assert_int_equal(l.seen.items, 3);
        assert_int_equal(perfd_client_events(l.client), POLLIN); /* and then nothing is, and nobody is woken for it */
        assert_true(perfd_client_due(l.client) == UINT64_MAX);

        assert_int_equal(write(l.go, "", 1), 1);
        assert_int_equal(process(&l, 5), 0);
        assert_int_equal(perfd_client_events(l.client), POLLIN);
        assert_int_equal(perfd_stream_stop(l.client), 0);
        assert_int_equal(process(&l, 7), PERFD_E_CLOSED);
        assert_int_equal(l.seen.items, 6);
        assert_non_null(strstr(perfd_client_error(l.client)->message, "has ended without a word"));
        line_deinit(&l);
}

static void test_last_word(void **state) {
        Line l;

        line_init(&l, serve_last_word);
        assert_int_equal(perfd_client_process(l.client), 0);
        assert_int_equal(l.seen.starts, 1);
        assert_int_equal(write(l.go, "", 1), 1);
        assert_int_equal(process(&l, 1), PERFD_E_REFUSED);
        assert_int_equal(perfd_client_error(l.client)->refusal, PERFD_REFUSED_DENIED);
        assert_string_equal(perfd_client_error(l.client)->reason, "revoked");
        assert_string_equal(perfd_client_error(l.client)->message, "the certificate was revoked");
        assert_int_equal(perfd_client_process(l.client), PERFD_E_STATE);
        line_deinit(&l);
}

/* What cannot be sent any more raises no SIGPIPE, and does not hide what is there to be read. */
static void test_damage(void **state) {
        Line l;

        line_init(&l, serve_damage);
        assert_int_equal(shutdown(perfd_client_fd(l.client), SHUT_WR), 0);
        assert_int_equal(perfd_stream_stop(l.client), 0);
        assert_int_equal(write(l.go, "", 1), 1);
        assert_int_equal(process(&l, 1), PERFD_E_PROTOCOL);
        assert_non_null(strstr(perfd_client_error(l.client)->message, "what came is not what was sent (decryption failed or bad record mac)"));
        assert_int_equal(l.seen.items, 0);
        line_deinit(&l);
}

/* --- what it fails with --- */

static void check_failure(perfd_client *c, const char *uri, int code, const char *reason, const char *message) {
        const perfd_error *e;

        assert_int_equal(perfd_client_connect_uri(c, uri), code);
        e = perfd_client_error(c);
        assert_string_equal(e->reason, reason);
        if (!strstr(e->message, message))
                fail_msg("'%s' has no '%s'", e->message, message);
        assert_int_equal(perfd_client_fd(c), -1); /* and it may be tried elsewhere */
}

static void test_wrong_uris(void **state) {
        static const char *const wrong[] = { "tls://", "tls://web1", "tls://web1:", "tls://:1", "tls://web1:0", "tls://web1:65536",
                                             "tls://web1:1x", "tls://web1:-1", "tls://web1:000001", "tls://[::1]", "tls://[::1]1", "tls://[::1",
                                             "tls://[]:1", "tls://[web1]:1", "tls://[::1%]:1", "tls://[::1%a/b]:1", "tls://::1:1", "tls://a@b:1",
                                             "tls://a:1/b", "tls://a:1//", "tls://a%41:1", "tls:/a:1", "TLS://a:1" };
        perfd_client *c = perfd_client_new("test 1");

        assert_int_equal(perfd_client_set_tls(c, folder), 0);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                check_failure(c, wrong[i], PERFD_E_INVALID, "bad-uri", "or tls://HOST:PORT");
        perfd_client_free(c);
}

static void test_files(void **state) {
        perfd_client *c = perfd_client_new("test 1");

        check_failure(c, "tls://127.0.0.1:1", PERFD_E_INVALID, "no-certificate", "perfd_client_set_tls() does");
        assert_int_equal(perfd_client_set_tls(c, NULL), PERFD_E_INVALID);
        assert_int_equal(perfd_client_set_tls(c, ""), PERFD_E_INVALID);
        assert_int_equal(perfd_client_set_tls_files(c, "/a", "", "/c"), PERFD_E_INVALID);
        assert_int_equal(perfd_client_set_tls_files(c, "/nowhere/a", "/nowhere/b", "/nowhere/c"), 0);
        check_failure(c, "tls://127.0.0.1:1", PERFD_E_INVALID, "no-certificate", "/nowhere/a does not exist");
        assert_int_equal(perfd_client_set_tls(c, "/nowhere"), 0);
        check_failure(c, "tls://127.0.0.1:1/", PERFD_E_INVALID, "no-certificate", "/nowhere/ca.crt does not exist");
        perfd_client_free(c);
}

/* Nobody answers: the port is open, or was. */
static void test_silence(void **state) {
        perfd_client *c = perfd_client_new("test 1");
        char uri[64];
        int listener = listen_somewhere(uri, sizeof(uri));

        assert_int_equal(perfd_client_set_tls(c, folder), 0);
        perfd_client_set_timeout(c, 20);
        check_failure(c, uri, PERFD_E_TIMEOUT, "timeout", "that port is open, and no handshake of TLS was answered within 20 ms");
        close(listener);
        check_failure(c, uri, PERFD_E_UNREACHABLE, "refused", "nobody listens on this port at 127.0.0.1");
        perfd_client_free(c);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bytes_that_are_decrypted), cmocka_unit_test(test_last_word), cmocka_unit_test(test_damage),
                cmocka_unit_test(test_wrong_uris), cmocka_unit_test(test_files), cmocka_unit_test(test_silence),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
