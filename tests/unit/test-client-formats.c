/* libperfd's request of formats against a played daemon: what it says on the wire, and what becomes of each part of the answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfd.h"
#include "tests/unit/played-daemon.h"

typedef struct Pair {
        perfd_client *client;
        int daemon;
} Pair;

/* Connected and greeted; the hello had the id 1. */
static Pair pair_new(void) {
        int fds[2];
        Pair p;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        p.daemon = fds[1];
        p.client = perfd_client_new("test 1");
        play_hello(p.daemon, 1);
        assert_int_equal(perfd_client_connect_fd(p.client, fds[0]), 0);
        play_request_free(play_request(p.daemon));
        return p;
}

static void pair_free(Pair *p) {
        perfd_client_free(p->client);
        close(p->daemon);
}

static void test_formats(void **state) {
        static const uint32_t ids[] = { 7, 9 };
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__EventFormatsReply reply = PERFD__V1__EVENT_FORMATS_REPLY__INIT;
        Perfd__V1__EventFormat formats[2] = { PERFD__V1__EVENT_FORMAT__INIT, PERFD__V1__EVENT_FORMAT__INIT };
        Perfd__V1__EventFormat *list[2] = { &formats[0], &formats[1] };
        const perfd_event_format *format;
        const perfd_format_host *host;
        Perfd__V1__Request *request;
        perfd_result *result;
        Pair p = pair_new();

        (void)state;
        formats[0].id = 7;
        formats[0].has_attr = true;
        formats[0].type = 2;
        formats[0].config = 316;
        formats[0].config1 = 1;
        formats[0].config2 = 2;
        formats[0].bp_type = 3;
        formats[0].tracepoint = (char *)"sched:sched_switch";
        formats[0].format = (ProtobufCBinaryData){ .data = (uint8_t *)"name: x", .len = 7 };
        formats[1].id = 9;
        reply.events = list;
        reply.n_events = 2;
        reply.header_page = (ProtobufCBinaryData){ .data = (uint8_t *)"page", .len = 4 };
        reply.page_bytes = 4096;
        reply.long_bytes = 8;
        reply.big_endian = true;
        reply.machine = (char *)"s390x";
        reply.n_cpus = 4;
        reply.n_online_cpus = 3;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_EVENT_FORMATS;
        r.event_formats = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_formats(p.client, ids, 2, &result), 0);

        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_EVENT_FORMATS);
        assert_int_equal(request->event_formats->n_ids, 2);
        assert_int_equal(request->event_formats->ids[1], 9);
        play_request_free(request);

        format = perfd_result_event_format(result, 0);
        assert_int_equal(format->id, 7);
        assert_true(format->has_attr);
        assert_int_equal(format->type, 2);
        assert_int_equal(format->config, 316);
        assert_int_equal(format->config1, 1);
        assert_int_equal(format->config2, 2);
        assert_int_equal(format->bp_type, 3);
        assert_string_equal(format->tracepoint, "sched:sched_switch");
        assert_int_equal(format->format.length, 7);
        assert_memory_equal(format->format.bytes, "name: x", 7);
        format = perfd_result_event_format(result, 1);
        assert_int_equal(format->id, 9);
        assert_false(format->has_attr);
        assert_string_equal(format->tracepoint, "");
        assert_int_equal(format->format.length, 0);
        assert_null(perfd_result_event_format(result, 2));
        host = perfd_result_format_host(result);
        assert_int_equal(host->header_page.length, 4);
        assert_int_equal(host->header_event.length, 0);
        assert_int_equal(host->page_bytes, 4096);
        assert_int_equal(host->long_bytes, 8);
        assert_true(host->big_endian);
        assert_string_equal(host->machine, "s390x");
        assert_int_equal(host->n_cpus, 4);
        assert_int_equal(host->n_online_cpus, 3);
        perfd_result_free(result);
        pair_free(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_formats),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
