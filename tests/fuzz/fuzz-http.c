/*
 * Any bytes as what comes to the server of metrics, on a socket of loopback: the answer is nothing, or one of HTTP whose status is an error
 * or whose body is metrics; then comes the end, and the next client is served.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/relay/endpoint.h"
#include "client/relay/metrics-server.h"

#define PATIENCE_MSEC 100000
#define INPUT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static RelayCounters counters;
static MetricsServer *server;
static Endpoint place;

/* On a port that was free a moment ago. */
static void start(void) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM, 0), r;
        Explanation e = EXPLANATION_NULL;
        char text[32], *item = text;
        const RelayConfig config = { .stream = (char *)"/nonexistent/stream.sock", .metrics_listen = { .items = &item, .n = 1 },
                                     .metrics_connections = 4, .metrics_request_timeout = UINT64_C(200000000), .metrics_series = 100 };

        assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0);
        close(fd);
        (void)snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
        assert(endpoint_parse(text, &place, &e) == 0);
        r = metrics_server_start(&config, &counters, NULL, NULL, &server, &e);
        if (r != 0)
                fprintf(stderr, "%s: %s\n", text, e.text);
        assert(r == 0 && metrics_server_is_of(server, &config));
}

/* Whatever libFuzzer's alarm interrupts. */
static void wait_for(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int n;

        while ((n = poll(&p, 1, PATIENCE_MSEC)) < 0 && errno == EINTR)
                ;
        assert(n == 1);
}

/* The beginning of what it answers, and how many bytes in all. */
static size_t ask(const uint8_t *bytes, size_t length, char *answer, size_t size) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char rest[4096];
        size_t n = 0;
        ssize_t k = 1;

        assert(fd >= 0 && connect(fd, (struct sockaddr *)&place.address, place.size) == 0);
        while (length > 0 && (k = send(fd, bytes, length, MSG_NOSIGNAL)) > 0) {
                bytes += k;
                length -= (size_t)k;
        }
        (void)shutdown(fd, SHUT_WR);
        do {
                wait_for(fd);
                k = n < size ? recv(fd, answer + n, size - n, 0) : recv(fd, rest, sizeof(rest), 0);
                n += k > 0 ? (size_t)k : 0;
        } while (k > 0);
        assert(k == 0 || errno == ECONNRESET); /* it has not read all */
        close(fd);
        return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static const char whole[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        char answer[65536];
        size_t n;

        if (!server)
                start();
        n = ask(bytes, length < INPUT_MAX ? length : INPUT_MAX, answer, sizeof(answer) - 1);
        answer[n < sizeof(answer) ? n : sizeof(answer) - 1] = '\0';
        assert(n == 0 || strncmp(answer, "HTTP/1.", 7) == 0);
        if (n > 12 && strncmp(answer + 9, "200", 3) == 0 && strncmp((const char *)bytes, "HEAD", 4) != 0)
                assert(strstr(answer, "\nperfd_up 0\n"));
        n = ask((const uint8_t *)whole, sizeof(whole) - 1, answer, sizeof(answer) - 1);
        answer[n < sizeof(answer) ? n : sizeof(answer) - 1] = '\0';
        assert(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0 && strstr(answer, "\nperfd_up 0\n"));
        return 0;
}
