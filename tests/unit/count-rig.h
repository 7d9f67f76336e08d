/* For tests of `count`: its daemon, played from the first request to the end of the stream. */
#pragma once

#include <signal.h>

#include "tests/unit/perfctl-rig.h"
#include "tests/unit/played-stream.h"

/* The answer to the first `list`, and to the second: the played event, which runs, and then with its fields. */
static void play_fields(Ran *r, uint64_t id) {
        Perfd__V1__EventState state = PERFD__V1__EVENT_STATE__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__Request *request = play_request(r->daemon);
        PlayedDescriptor d;

        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_LIST);
        assert_string_equal(request->list->glob, "mine");
        assert_false(request->list->fields);
        play_request_free(request);
        spec.name = (char *)"mine";
        state.id = PLAYED_EVENT;
        state.spec = &spec;
        state.enabled = true;
        play_listed(r, id++, &state);
        request = play_request(r->daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_LIST);
        assert_true(request->list->fields);
        assert_string_equal(request->list->glob, "mine");
        play_request_free(request);
        play_descriptor_init(&d, true);
        state.fields = d.field_list;
        state.n_fields = d.message.n_fields;
        play_listed(r, id, &state);
}

/* Subscribed to these fields, NULL: to none; the start is on its way. */
static void count_begin_in(Ran *r, const char *const *fields, Perfd__V1__Order order) {
        Perfd__V1__Request *request;
        size_t n = 0;

        run_greet(r);
        play_fields(r, 2);
        request = play_request(r->daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        for (; fields && fields[n]; n++)
                assert_string_equal(n < request->subscribe->n_fields ? request->subscribe->fields[n] : "none", fields[n]);
        assert_int_equal(request->subscribe->n_fields, n);
        assert_int_equal(request->subscribe->payload, n > 0 ? PERFD__V1__PAYLOAD__PAYLOAD_FIELDS : PERFD__V1__PAYLOAD__PAYLOAD_RAW);
        assert_int_equal(request->subscribe->order, order);
        play_request_free(request);
        play_ok(r->daemon, 4);
        play_start(r->daemon);
}

static void count_begin(Ran *r, const char *const *fields) {
        count_begin_in(r, fields, PERFD__V1__ORDER__ORDER_CPU);
}

/* Whose they are is asked. */
static void count_start_in_time(Ran *r, const char *const *words, const char *const *fields) {
        run_start(r, words);
        count_begin_in(r, fields, PERFD__V1__ORDER__ORDER_TIME);
}

static void count_start(Ran *r, const char *const *words, const char *const *fields) {
        run_start(r, words);
        count_begin(r, fields);
}

/* `n` samples of this state and args[0], by a thread. */
static void play_samples(Ran *r, uint64_t sequence, int64_t value, uint64_t argument, uint32_t tid, size_t n) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item items[16], *list[16];
        uint64_t numbers[8];

        assert_true(n <= 16);
        for (size_t i = 0; i < n; i++) {
                play_item_init(&items[i], 5000000100);
                memcpy(numbers, items[i].numbers, sizeof(numbers));
                numbers[0] = (uint64_t)value;
                numbers[1] = argument;
                items[i].numbers = numbers;
                items[i].tid = tid;
                items[i].pid = tid == 11 ? 10 : tid;
                list[i] = &items[i];
        }
        p.sequence = sequence;
        p.items = list;
        p.n_items = n;
        play_packet(r->daemon, &p);
}

/* Ctrl-C, and the end of a stream of so many items. */
static void count_end(Ran *r, uint64_t sequence, uint64_t sent) {
        kill(r->pid, SIGINT);
        await_stop(r);
        play_end(r->daemon, sequence, sent, 0);
        run_end(r);
}
