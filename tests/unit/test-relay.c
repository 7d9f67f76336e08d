/* What perfd-relay does without a network: relay.yaml, the lengths of frames that pass, and how many bytes may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "client/relay/endpoint.h"
#include "client/relay/frame-track.h"
#include "client/relay/given-sockets.h"
#include "client/relay/publish/publisher.h"
#include "client/relay/relay-config.h"
#include "client/relay/relay.h"
#include "client/relay/token-bucket.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

#define FILES "listen: { certificate: s.crt, key: s.key, ca: /etc/ca.crt, tls: ['127.0.0.1:7443', '[::1]:7444'] }\n"

/* "LINE:COLUMN: TEXT" of each, with a line break behind it. */
static RelayConfig *parse_all(const char *yaml, const char *expected, int refusal) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        RelayConfig *c = NULL;
        char text[4096] = "", line[1024];
        int r = relay_config_parse("/etc/perfd/relay.yaml", yaml, strlen(yaml), &m, &c);

        assert_int_equal(config_diagnostics_finish(&m), 0);
        for (size_t i = 0; i < m.n_items; i++) {
                (void)snprintf(line, sizeof(line), "%u:%u: %s\n", m.items[i].line, m.items[i].column, m.items[i].text);
                strncat(text, line, sizeof(text) - strlen(text) - 1);
        }
        config_diagnostics_deinit(&m);
        assert_string_equal(text, expected);
        assert_int_equal(r, refusal);
        if (r != 0 && c)
                c = relay_config_free(c);
        return c;
}

/* expected: errors; NULL: it has to be valid. */
static RelayConfig *parse(const char *yaml, const char *expected) {
        return parse_all(yaml, expected ? expected : "", expected ? REFUSED_INVALID : 0);
}

static void test_values(void **state) {
        RelayConfig *c = parse("version: 1\nperfd: { stream: /s, control: /c }\n" FILES
                               "clients:\n"
                               "  - { name: 'web-*', events: [a, 'b:*'], where: 'pid != 0', raw: true, queue: 1MiB, connections: 3 }\n"
                               "  - { name: ops, control: true, events: ['*'], bytes-per-second: 5KiB }\n", NULL);

        assert_string_equal(c->stream, "/s");
        assert_string_equal(c->control, "/c");
        assert_string_equal(c->certificate, "/etc/perfd/s.crt");
        assert_string_equal(c->key, "/etc/perfd/s.key");
        assert_string_equal(c->ca, "/etc/ca.crt");
        assert_null(c->crl);
        assert_int_equal(c->listen.n, 2);
        assert_true(c->handshakes == 256 && c->handshakes_per_address == 16 && c->handshake_timeout == 10 * NSEC_PER_SEC);
        assert_int_equal(c->n_rules, 2);
        assert_true(c->rules[0].events.n == 2 && c->rules[0].status && c->rules[0].raw && !c->rules[0].control);
        assert_true(c->rules[0].queue == 1 << 20 && c->rules[0].connections == 3 && c->rules[0].bytes_per_second == 0);
        assert_string_equal(c->rules[0].where, "pid != 0");
        assert_true(c->rules[1].control && c->rules[1].connections == 16 && c->rules[1].bytes_per_second == 5120);
        assert_true(relay_rule_grants_same(&c->rules[0], &c->rules[0]));
        assert_false(relay_rule_grants_same(&c->rules[0], &c->rules[1]));
        relay_config_free(c);
}

/* Every error of a file at once, each where it stands. */
static void test_errors(void **state) {
        parse("", "1:1: the file is empty, expected version: 1 and at least one of the keys listen (with clients), publish and metrics\n");
        parse("version: 1\nclints: []\n" FILES,
              "1:1: key 'clients' is missing, expected a list of clients\n2:1: unknown key 'clints'; did you mean 'clients'?\n");
        parse("version: 2\n" FILES "clients: []\n",
              "1:10: version: found '2', expected 1, the only version of this format\n"
              "3:10: clients: found nothing, expected a list of clients\n");
        parse("version: 1\nlisten: { certificate: a, key: b, ca: c, tls: ['::1:7443', 'localhost:1', '1.2.3.4:0', '[::1'] }\n"
              "clients: [{ name: a, evnts: [b] }]\n",
              "2:49: listen.tls: found '::1:7443', in which an IPv6 address is not in brackets; expected ADDRESS:PORT, such as "
              "127.0.0.1:7443 or [::1]:7443\n"
              "2:61: listen.tls: found 'localhost:1', which is no address in numbers; expected ADDRESS:PORT, such as 127.0.0.1:7443 or "
              "[::1]:7443\n"
              "2:84: listen.tls: found '1.2.3.4:0', whose port is not a number from 1 to 65535; expected ADDRESS:PORT, such as "
              "127.0.0.1:7443 or [::1]:7443\n"
              "2:89: listen.tls: found '[::1', without a port; expected ADDRESS:PORT, such as 127.0.0.1:7443 or [::1]:7443\n"
              "3:22: unknown key 'evnts'; did you mean 'events'?\n");
        parse("version: 1\n" FILES "clients:\n  - { name: a, control: true, where: 'x == 1', events: [b] }\n  - { events: ['*'] }\n",
              "4:5: control: it needs perfd.control, the control socket of perfd\n"
              "4:38: where: it has no effect with 'control: true', by which the client may do everything; remove one of them\n"
              "4:56: events: found 'b', which has no effect with 'control: true', by which the client may do everything; remove one of "
              "them, or write ['*']\n"
              "5:5: key 'name' is missing, expected a name of certificates or a glob\n");
        parse("version: 1\n" FILES "clients: [{ name: a, where: 'x == 1' }]\nclients: []\n",
              "3:29: where: it has no effect without 'events'\n4:1: key 'clients' occurs twice, first in line 3\n");
}

/* A glob that is no glob would match nothing that anybody means. */
static void test_broken_globs(void **state) {
        parse("version: 1\nperfd: { control: /c }\n" FILES "clients:\n  - { name: '[', events: [a, 'b:[x', 'c\\'] }\n  - { name: 'web-[0-9', control: true }\n"
              "  - { name: '\\[', events: ['[ab]:*'] }\n",
              "5:14: name: found '[', a glob whose [ has no ]: close the set, or write \\[ for the character itself\n"
              "5:33: events: found 'b:[x', a glob whose [ has no ]: close the set, or write \\[ for the character itself\n"
              "5:40: events: found 'c\\', a glob that ends in a backslash: remove it, or write \\\\ for the character itself\n"
              "6:18: name: found 'web-[0-9', a glob whose [ has no ]: close the set, or write \\[ for the character itself\n");
        if (nats_is_built())
                parse("version: 1\npublish: { servers: ['nats://h'], routes: { a: { events: [b, 'c:['] } } }\n", "2:65: events: found 'c:[', a glob whose [ has no ]: close the set, or write \\[ for the character itself\n");
}

/* An item that an earlier one hides is said; one that also matches something else is not. */
static void test_hidden(void **state) {
        RelayConfig *c = parse_all("version: 1\n" FILES "clients:\n  - { name: 'web?' }\n  - { name: web10 }\n  - { name: web1 }\n"
                                   "  - { name: 'web*' }\n  - { name: 'web?' }\n  - { name: 'web1[0-9]*' }\n  - { name: ops }\n  - { name: '*' }\n"
                                   "  - { name: 'o?s' }\n",
                                   "6:13: name: the item of 'web?', in line 4, matches what 'web1' does, and decides, because it is first: put "
                                   "this one before it\n"
                                   "8:13: name: the item of 'web?', in line 4, matches what 'web?' does, and decides, because it is first: put "
                                   "this one before it\n"
                                   "9:13: name: the item of 'web*', in line 7, matches what 'web1[0-9]*' does, and decides, because it is first: "
                                   "put this one before it\n"
                                   "12:13: name: the item of '*', in line 11, matches what 'o?s' does, and decides, because it is first: put this "
                                   "one before it\n", 0);

        relay_config_free(c);
}

/* A relay without clients has something else to do; and clients have what they connect by. */
static void test_sections(void **state) {
        static const char publish[] = "version: 1\npublish: { servers: ['nats://h'], routes: { a: { events: ['*'] } } }\n";
        RelayConfig *c = parse("version: 1\nmetrics: { listen: ['127.0.0.1:9464'] }\n", NULL);

        assert_true(!c->has_listen && c->n_rules == 0 && !c->certificate);
        relay_config_free(c);
        if (nats_is_built()) {
                c = parse(publish, NULL);
                assert_true(!c->has_listen && c->publish.n_routes == 1);
                relay_config_free(c);
        }
        parse("version: 1\n", "1:1: the relay would have nothing to do, expected at least one of the keys listen (with clients), publish "
              "and metrics\n");
        parse("version: 1\nmetrics: { listen: [] }\n", "1:1: the relay would have nothing to do, expected at least one of the keys "
              "listen (with clients), publish and metrics\n");
        parse("version: 1\nmetrics: { listen: ['127.0.0.1:9464'] }\nclients: [{ name: a }]\n",
              "1:1: key 'listen' is missing, by which these 'clients' connect; expected a mapping with the keys certificate, key and ca\n");
        parse("version: 1\nmetrics: { listen: ['127.0.0.1:9464'] }\n" FILES, "1:1: key 'clients' is missing, expected a list of clients\n");
}

/* A predicate is perfd's language: an error stands in it, with all others of the file. */
static void test_predicates(void **state) {
        parse("version: 1\n" FILES "clients:\n  - { name: a, events: [b], where: 'pid = 1' }\n  - name: c\n    events: [b]\n    where: pid == 0x\n"
              "  - { nam: d, events: [b], where: sample.nosuch == 1 }\n",
              "4:41: where: found a single '=': write == to compare\n"
              "7:19: where: 0x must be followed by hexadecimal digits\n"
              "8:5: key 'name' is missing, expected a name of certificates or a glob\n"
              "8:7: unknown key 'nam'; did you mean 'name'?\n"
              "8:35: where: no sample has 'sample.nosuch'. It has, behind 'sample.': pid, tid, cpu, time, ip, addr, period, comm, event, uid, exe, "
              "cgroup, container, unit\n");
}

static void test_endpoints(void **state) {
        char text[ENDPOINT_TEXT_SIZE];
        Endpoint a, b;

        assert_int_equal(endpoint_parse("192.0.2.1:7443", &a, NULL), 0);
        endpoint_text(&a.address, text);
        assert_string_equal(text, "192.0.2.1:7443");
        assert_int_equal(endpoint_parse("[::ffff:192.0.2.1]:1", &b, NULL), 0);
        endpoint_text(&b.address, text);
        assert_string_equal(text, "192.0.2.1:1");
        assert_int_equal(endpoint_parse("[2001:db8::1]:65535", &a, NULL), 0);
        endpoint_text(&a.address, text);
        assert_string_equal(text, "[2001:db8::1]:65535");
        assert_int_equal(endpoint_parse("[2001:db8::ffff]:1", &b, NULL), 0);
        assert_true(endpoint_is_same_host(&a.address, &b.address)); /* one network of a host */
        assert_int_equal(endpoint_parse("[2001:db8:0:1::1]:1", &b, NULL), 0);
        assert_false(endpoint_is_same_host(&a.address, &b.address));
        for (const char *const *bad = (const char *const[]){ "", ":", "1", "[]:1", "[::1]1", "::1", "1.2.3.4", "1.2.3.4:65536", "[1.2.3.4]:1",
                                                             "1.2.3.4:1 ", "[::1]:1x", NULL }; *bad; bad++)
                assert_int_equal(endpoint_parse(*bad, &a, NULL), REFUSED_INVALID);
}

/* However the bytes are cut, the boundaries are the same. */
static void test_frames(void **state) {
        static const uint8_t bytes[] = { 3, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 1, 0, 0, 0, 'd' };
        static const size_t boundaries[] = { 0, 7, 11, 16 };

        for (size_t step = 1; step <= sizeof(bytes); step++) {
                FrameTrack t = FRAME_TRACK_NULL;

                for (size_t at = 0; at < sizeof(bytes);) {
                        size_t n = step < sizeof(bytes) - at ? step : sizeof(bytes) - at, next = 0;
                        bool is_boundary = false;

                        for (size_t i = 0; i < ARRAY_SIZE(boundaries); i++) {
                                is_boundary = is_boundary || boundaries[i] == at;
                                next = next == 0 && boundaries[i] >= at ? boundaries[i] : next;
                        }
                        assert_int_equal(frame_track_is_at_boundary(&t), is_boundary);
                        if (!is_boundary) {
                                assert_int_equal(frame_track_rest(&t, bytes + at, sizeof(bytes) - at), next - at);
                                assert_true(frame_track_room(&t) >= 1 && frame_track_room(&t) <= next - at);
                        } else {
                                assert_int_equal(frame_track_rest(&t, bytes + at, sizeof(bytes) - at), 0);
                                assert_int_equal(frame_track_room(&t), 0);
                        }
                        frame_track_pass(&t, bytes + at, n);
                        at += n;
                }
                assert_true(frame_track_is_at_boundary(&t));
        }
        for (uint32_t length = UINT32_MAX; length > 0; length >>= 8) { /* a length that is longer than anything that comes */
                FrameTrack t = FRAME_TRACK_NULL;
                uint8_t header[FRAME_HEADER_SIZE];

                frame_header_put(header, length);
                frame_track_pass(&t, header, sizeof(header));
                assert_int_equal(frame_track_room(&t), length);
        }
}

/* Never more than the rate and what the bucket held, whatever the times at which is asked. */
static void test_rate(void **state) {
        static const uint64_t rates[] = { 4096, 100000, 52428800 };

        for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
                for (nsec_t step = 1000; step < 2 * NSEC_PER_SEC; step *= 7) {
                        uint64_t passed = 0, most = rates[i] / 8 > 4096 ? rates[i] / 8 : 4096;
                        TokenBucket b;
                        nsec_t wait, now = 5 * NSEC_PER_SEC, end = now + (step < NSEC_PER_MSEC ? NSEC_PER_SEC / 10 : 10 * NSEC_PER_SEC);

                        token_bucket_init(&b, rates[i], now);
                        for (; now < end; now += step) {
                                size_t n = token_bucket_peek(&b, 16384, now, &wait);

                                assert_true(n > 0 ? wait == 0 : wait > 0);
                                token_bucket_take(&b, n);
                                passed += n;
                                assert_true(passed <= most + (now - 5 * NSEC_PER_SEC) * rates[i] / NSEC_PER_SEC);
                        }
                        if (step < NSEC_PER_MSEC / 10) /* and not much less, if it is asked often enough */
                                assert_true(passed + 4096 >= rates[i] / 10);
                }
        assert_int_equal(token_bucket_peek(&(TokenBucket){ .rate = 0 }, 123, 1, &(nsec_t){ 0 }), 123);
}

static void test_lines(void **state) {
        RelayLines l = { .begin = 0 };
        unsigned n_left_out, n = 0;

        for (int i = 0; i < 50; i++)
                n += relay_lines_may(&l, 10, 3600 * NSEC_PER_SEC, &n_left_out);
        assert_int_equal(n, 10);
        assert_true(relay_lines_may(&l, 10, 0, &n_left_out));
        assert_int_equal(n_left_out, 40);
}

static void test_metrics(void **state) {
        RelayConfig *c = parse("version: 1\n" FILES "clients: [{ name: a }]\nmetrics: { listen: ['127.0.0.1:9464', '[::1]:9464'] }\n", NULL);

        assert_int_equal(c->metrics_listen.n, 2);
        assert_true(c->metrics_connections == 32 && c->metrics_request_timeout == 10 * NSEC_PER_SEC && c->metrics_series == 20000);
        relay_config_free(c);
        c = parse("version: 1\n" FILES "clients: [{ name: a }]\n", NULL);
        assert_int_equal(c->metrics_listen.n, 0);
        assert_true(metrics_server_is_of(NULL, c));
        relay_config_free(c);
        c = parse("version: 1\n" FILES "clients: [{ name: a }, { name: b, metrics: true }]\n", NULL); /* by TLS alone */
        assert_true(relay_config_has_metrics_clients(c));
        assert_false(metrics_server_is_of(NULL, c));
        assert_false(relay_rule_grants_same(&c->rules[0], &c->rules[1]));
        relay_config_free(c);
        parse("version: 1\n" FILES "clients: [{ name: a }]\nmetrics: { listen: ['192.0.2.1:1', '[::1]:7444'], series: 99 }\n",
              "4:21: metrics.listen: found '192.0.2.1:1', which other hosts reach, and metrics are served without TLS; use an address of "
              "this host alone, such as 127.0.0.1:9464 or [::1]:9464, and let other hosts read them by TLS: 'metrics: true' in an "
              "item of 'clients'\n"
              "4:36: metrics.listen: found '[::1]:7444', which listen.tls has too: use another port\n"
              "4:59: metrics.series: found '99', expected a whole number from 100 to 100000\n");
}

/* One of an address before one of all; and a socket of IPv6 for IPv4 only where Linux lets it. */
static void test_given(void **state) {
        static const struct {
                const char *address;
                GivenPurpose purpose;
                bool takes_ipv4;
        } given[] = { { "0.0.0.0:1", GIVEN_TLS }, { "127.0.0.1:1", GIVEN_TLS }, { "[::]:2", GIVEN_TLS, true }, { "[::]:3", GIVEN_TLS },
                      { "[::1]:3", GIVEN_METRICS } };
        static const struct {
                const char *address;
                GivenPurpose purpose;
                int found; /* -1: none */
        } asked[] = { { "127.0.0.1:1", GIVEN_TLS, 1 }, { "127.0.0.2:1", GIVEN_TLS, 0 }, { "0.0.0.0:1", GIVEN_TLS, 0 },
                      { "[::1]:1", GIVEN_TLS, -1 }, { "127.0.0.1:2", GIVEN_TLS, 2 }, { "[::1]:2", GIVEN_TLS, 2 },
                      { "127.0.0.1:3", GIVEN_TLS, -1 }, { "[::1]:3", GIVEN_TLS, 3 }, { "[::1]:3", GIVEN_METRICS, 4 },
                      { "127.0.0.1:1", GIVEN_METRICS, -1 }, { "127.0.0.1:4", GIVEN_TLS, -1 }, { "?", GIVEN_TLS, -1 } };
        GivenSocket items[ARRAY_SIZE(given)];
        GivenSockets g = { .items = items, .n = ARRAY_SIZE(items) };

        for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
                Endpoint endpoint;

                assert_int_equal(endpoint_parse(given[i].address, &endpoint, NULL), 0);
                items[i] = (GivenSocket){ .fd = -1, .purpose = given[i].purpose, .address = endpoint.address, .takes_ipv4 = given[i].takes_ipv4 };
        }
        for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
                assert_ptr_equal(given_sockets_find(&g, asked[i].purpose, asked[i].address), asked[i].found < 0 ? NULL : &items[asked[i].found]);
        assert_null(given_sockets_find(NULL, GIVEN_TLS, "127.0.0.1:1"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values), cmocka_unit_test(test_errors), cmocka_unit_test(test_broken_globs), cmocka_unit_test(test_hidden), cmocka_unit_test(test_sections), cmocka_unit_test(test_predicates), cmocka_unit_test(test_endpoints),
                cmocka_unit_test(test_frames), cmocka_unit_test(test_rate),   cmocka_unit_test(test_lines),
                cmocka_unit_test(test_metrics), cmocka_unit_test(test_given),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
