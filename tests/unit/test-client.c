/* libperfd against a daemon that is played on the other end of a socketpair; answers are sent before they are asked for. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/connection/client.h"
#include "client/perfd.h"
#include "tests/unit/played-stream.h"

typedef struct Pair {
        perfd_client *client;
        int daemon;
} Pair;

/* Connected and greeted; the hello had the id 1. */
static Pair pair_new(void) {
        Pair p;
        int fds[2];
        Perfd__V1__Request *hello;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        p.daemon = fds[1];
        p.client = perfd_client_new("test 1");
        play_hello(p.daemon, 1);
        assert_int_equal(perfd_client_connect_fd(p.client, fds[0]), 0);
        hello = play_request(p.daemon);
        assert_int_equal(hello->body_case, PERFD__V1__REQUEST__BODY_HELLO);
        assert_int_equal(hello->id, 1);
        assert_int_equal(hello->hello->protocol, PERFD_PROTOCOL);
        assert_string_equal(hello->hello->program, "test 1");
        play_request_free(hello);
        assert_string_equal(perfd_client_version(p.client), "7.5");
        assert_true(perfd_client_may_change(p.client));
        return p;
}

static void pair_free(Pair *p) {
        perfd_client_free(p->client);
        close(p->daemon);
}

static void test_add(void **state) {
        Pair p = pair_new();
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        Perfd__V1__Request *request;
        perfd_event_spec specs[] = { PERFD_EVENT_SPEC_INIT, PERFD_EVENT_SPEC_INIT };
        uint32_t pids[] = { 1, 4000000000 };
        perfd_result *result;

        specs[0].event = "sched:sched_switch";
        specs[0].filter = "prev_pid != 0";
        specs[0].pids = pids;
        specs[0].n_pids = 2;
        specs[0].callchain = PERFD_CALLCHAIN_BOTH;
        specs[1].event = "cpu-clock";
        specs[1].frequency = 99;
        ref.id = 12;
        ref.name = (char *)"sched:sched_switch";
        reply.events = refs;
        reply.n_events = 1;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        r.added = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_add(p.client, specs, 2, &result), 0);

        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_ADD);
        assert_int_equal(request->add->n_events, 2);
        assert_string_equal(request->add->events[0]->event, "sched:sched_switch");
        assert_string_equal(request->add->events[0]->filter, "prev_pid != 0");
        assert_int_equal(request->add->events[0]->target->n_pids, 2);
        assert_int_equal(request->add->events[0]->target->pids[1], 4000000000);
        assert_int_equal(request->add->events[0]->callchain, PERFD__V1__CALLCHAIN__CALLCHAIN_BOTH);
        assert_null(request->add->events[1]->target);
        assert_int_equal(request->add->events[1]->frequency, 99);
        play_request_free(request);

        assert_int_equal(perfd_result_ref(result, 0)->id, 12);
        assert_string_equal(perfd_result_ref(result, 0)->name, "sched:sched_switch");
        assert_null(perfd_result_ref(result, 1));
        assert_null(perfd_result_status(result));
        perfd_result_free(result);

        specs[1].size = sizeof(specs[1]) - 8; /* not the distance of the array */
        assert_int_equal(perfd_add(p.client, specs, 2, NULL), PERFD_E_INVALID);
        pair_free(&p);
}

/* A refusal is told in full, and the connection goes on. */
static void test_refusal(void **state) {
        Pair p = pair_new();
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        const perfd_error *e;
        perfd_result *result = NULL;

        r.id = 2;
        r.status = PERFD__V1__STATUS__STATUS_INVALID;
        r.message = (char *)"no such field";
        r.reason = (char *)"bad-filter";
        r.position = 4;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_set_filter(p.client, "x", "a = b"), PERFD_E_REFUSED);
        e = perfd_client_error(p.client);
        assert_int_equal(e->code, PERFD_E_REFUSED);
        assert_int_equal(e->refusal, PERFD_REFUSED_INVALID);
        assert_string_equal(e->message, "no such field");
        assert_string_equal(e->reason, "bad-filter");
        assert_int_equal(e->position, 4);

        r = (Perfd__V1__Response)PERFD__V1__RESPONSE__INIT;
        r.id = 3;
        r.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        r.list = &list;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_list(p.client, NULL, &result), 0);
        assert_null(perfd_result_event(result, 0));
        perfd_result_free(result);

        assert_int_equal(perfd_validate(p.client, "a: \0b", 5, &result), PERFD_E_INVALID);
        assert_int_equal(perfd_client_error(p.client)->position, 4);
        pair_free(&p);
}

/* Why the daemon ends the connection, in the place of an answer: that is told, and nothing is asked any more. */
static void test_last_word(void **state) {
        Pair p = pair_new();
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks none = PERFD_CALLBACKS_INIT;

        p.client->path = strdup("/nowhere/socket"); /* as if it had come by it: then memory is asked for first */
        assert_non_null(p.client->path);
        r.status = PERFD__V1__STATUS__STATUS_EXHAUSTED;
        r.message = (char *)"all connections were taken";
        r.reason = (char *)"idle";
        play_response(p.daemon, &r);
        shutdown(p.daemon, SHUT_WR);
        assert_int_equal(perfd_subscribe(p.client, &s, &none, NULL), PERFD_E_REFUSED);
        assert_string_equal(perfd_client_error(p.client)->message, "all connections were taken");
        assert_string_equal(perfd_client_error(p.client)->reason, "idle");
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_STATE);
        pair_free(&p);
}

static void test_broken_connections(void **state) {
        Pair p = pair_new();
        perfd_client *nobody = perfd_client_new(NULL);

        play_ok(p.daemon, 9); /* a response to a question that was not asked */
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_PROTOCOL);
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_STATE);
        pair_free(&p);

        p = pair_new();
        play_ok(p.daemon, 2); /* without the status that was asked for */
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_PROTOCOL);
        pair_free(&p);

        p = pair_new();
        play_bytes(p.daemon, "\xff\xff\xff\xff", 4);
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_PROTOCOL);
        pair_free(&p);

        p = pair_new();
        shutdown(p.daemon, SHUT_RDWR);
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_CLOSED);
        pair_free(&p);

        p = pair_new();
        perfd_client_set_timeout(p.client, 1);
        assert_int_equal(perfd_status(p.client, NULL), PERFD_E_TIMEOUT);
        pair_free(&p);

        assert_int_equal(perfd_client_process(nobody), PERFD_E_STATE);
        assert_non_null(strstr(perfd_client_error(nobody)->message, "not connected"));
        assert_int_equal(perfd_stream_stop(nobody), PERFD_E_STATE);
        assert_non_null(strstr(perfd_client_error(nobody)->message, "not connected"));
        assert_int_equal(perfd_client_connect(nobody, "/nonexistent/socket"), PERFD_E_UNREACHABLE);
        assert_int_equal(perfd_client_fd(nobody), -1);
        assert_int_equal(perfd_client_due(nobody), UINT64_MAX);
        assert_int_equal(perfd_client_wait(nobody), PERFD_E_STATE);
        perfd_client_free(nobody);
}

/* What the callbacks heard, as one line of text each. */
typedef struct Heard {
        char text[4096];
        size_t length;
        uint64_t items;
} Heard;

__attribute__((format(printf, 2, 3))) static void hear(Heard *h, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        h->length += (size_t)vsnprintf(h->text + h->length, sizeof(h->text) - h->length, format, ap);
        va_end(ap);
        assert_true(h->length < sizeof(h->text));
}

static void on_start(void *userdata, const perfd_start *s) {
        hear(userdata, "start %s %lld %s %u\n", s->clock, (long long)s->wall_offset, s->host, s->n_cpus);
}

static void on_event(void *userdata, const perfd_event *e) {
        hear(userdata, "event %u %s %zu\n", e->id, e->name, e->n_fields);
}

static void on_item(void *userdata, const perfd_item *item) {
        Heard *h = userdata;
        const perfd_event *event = perfd_item_event(item);
        const uint64_t *chain;
        perfd_text comm = perfd_item_comm(item);
        perfd_value v;
        char text[64];
        size_t n;

        h->items++;
        hear(h, "item %llu %s cpu=%u %u/%u %.*s", (unsigned long long)perfd_item_time(item), event ? event->name : "-",
             perfd_item_cpu(item), perfd_item_pid(item), perfd_item_tid(item), (int)comm.length, comm.bytes);
        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                n = perfd_value_render(&v, text, sizeof(text));
                hear(h, " %s=", v.field->name);
                for (size_t k = 0; k < n; k++)
                        hear(h, (unsigned char)text[k] - ' ' < 95U ? "%c" : "<%02x>", (unsigned char)text[k]);
        }
        n = perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &chain);
        if (n > 0)
                hear(h, " chain=%zu:%llx", n, (unsigned long long)chain[n - 1]);
        if (perfd_item_task_record(item))
                hear(h, " task %u of %u", perfd_item_task_record(item)->pid, perfd_item_task_record(item)->ppid);
        if (perfd_item_record(item) == PERFD_LOST)
                hear(h, " lost %llu", (unsigned long long)perfd_item_lost(item));
        hear(h, "\n");
}

static void on_gap(void *userdata, const perfd_gap *g) {
        hear(userdata, "gap %s %llu-%llu %llu items of %s\n", g->reason, (unsigned long long)g->first_sequence,
             (unsigned long long)g->last_sequence, (unsigned long long)g->items, g->events[0].name);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        hear(userdata, "removed %u %s\n", id, name);
}

static void on_end(void *userdata, const perfd_end *e) {
        hear(userdata, "end %s received=%llu missed=%llu sent=%llu balanced=%d exact=%d\n", e->reason,
             (unsigned long long)e->received, (unsigned long long)e->missed, (unsigned long long)e->own->sent, perfd_result_is_balanced(e->ledger),
             perfd_result_is_loss_exact(e->ledger));
}

static const perfd_callbacks callbacks = {
        .size = sizeof(callbacks), .start = on_start, .event = on_event, .item = on_item,
        .gap = on_gap, .removed = on_removed, .end = on_end,
};

static Pair stream_new(Heard *h) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        Perfd__V1__Request *request;
        Pair p = pair_new();

        *h = (Heard){ .length = 0 };
        s.where = "cpu == 1";
        s.records = PERFD_RECORD_BIT(PERFD_COMM) | PERFD_RECORD_BIT(PERFD_MMAP2);
        play_ok(p.daemon, 2);
        play_start(p.daemon); /* behind the response already: it must not get stuck in a buffer */
        assert_int_equal(perfd_subscribe(p.client, &s, &callbacks, h), 0);
        assert_int_equal(h->length, 0);
        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        assert_string_equal(request->subscribe->where, "cpu == 1");
        assert_int_equal(request->subscribe->records, 1 << PERFD__V1__RECORD_KIND__RECORD_KIND_COMM |
                                                              1 << PERFD__V1__RECORD_KIND__RECORD_KIND_MMAP2);
        play_request_free(request);
        return p;
}

/* Until the socket is empty. */
static int stream_process(Pair *p) {
        struct pollfd fd = { .fd = perfd_client_fd(p->client), .events = perfd_client_events(p->client) };
        int r = 0;

        while (r == 0 && poll(&fd, 1, 0) == 1)
                r = perfd_client_process(p->client);
        return r;
}

#define STARTED "start monotonic -5 h 2\nevent 7 mine 6\n"
#define VALUES                                                                                                         \
        "cpu=1 10/11 a b state=GONE args={5,18446744073709551615} name=a<ff>\"b list={300,0,65535} flags=WR|0x40 "       \
        "blob=<00><01><02><fe> chain=2:ffffffff81000042\n"

static void play_records(int fd, uint64_t sequence) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item fork = PERFD__V1__ITEM__INIT, lost = PERFD__V1__ITEM__INIT, *items[] = { &fork, &lost };
        Perfd__V1__TaskRecord task = PERFD__V1__TASK_RECORD__INIT;
        Perfd__V1__LostRecord record = PERFD__V1__LOST_RECORD__INIT;
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *removed[] = { &ref };

        fork.time = lost.time = 400;
        task.pid = 50;
        task.ppid = 40;
        fork.record_case = PERFD__V1__ITEM__RECORD_FORK;
        fork.fork = &task;
        record.lost = 9;
        lost.event = PLAYED_EVENT;
        lost.record_case = PERFD__V1__ITEM__RECORD_LOST;
        lost.lost = &record;
        ref.id = PLAYED_EVENT;
        ref.name = (char *)"mine";
        packet.sequence = sequence;
        packet.items = items;
        packet.n_items = 2;
        packet.removed = removed;
        packet.n_removed = 1;
        play_packet(fd, &packet);
}

static void test_stream(void **state) {
        Heard h;
        Pair p = stream_new(&h);
        Perfd__V1__Request *request;

        play_items(p.daemon, 2, 100, 2);
        play_gap(p.daemon, 3, 5, 6);
        play_records(p.daemon, 7);
        assert_int_equal(stream_process(&p), 0);
        assert_int_equal(perfd_stream_stop(p.client), 0);
        assert_int_equal(perfd_stream_stop(p.client), 0);
        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_STOP);
        play_request_free(request);
        assert_int_equal(perfd_list(p.client, NULL, NULL), PERFD_E_STATE);
        play_end(p.daemon, 8, 4, 0);
        assert_int_equal(stream_process(&p), PERFD_E_ENDED);
        assert_int_equal(perfd_client_process(p.client), PERFD_E_ENDED);
        assert_string_equal(h.text, STARTED "item 100 mine " VALUES "item 101 mine " VALUES
                                            "gap outbox 3-5 20 items of mine\n"
                                            "item 400 - cpu=0 0/0 swapper/0 task 50 of 40\n"
                                            "item 400 mine cpu=0 0/0 swapper/0 lost 9\n"
                                            "removed 7 mine\n"
                                            "end stopped received=4 missed=20 sent=4 balanced=1 exact=1\n");
        pair_free(&p);
}

/* The same bytes one by one. */
static void test_stream_in_pieces(void **state) {
        Heard h;
        Pair p = stream_new(&h);
        uint8_t bytes[8192];
        int pipe[2];
        ssize_t n;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe), 0);
        play_items(pipe[1], 2, 100, 1);
        play_end(pipe[1], 3, 1, 1); /* the sum is wrong, although the daemon says that it is right */
        n = recv(pipe[0], bytes, sizeof(bytes), MSG_DONTWAIT);
        for (ssize_t i = 0; i < n; i++) {
                play_bytes(p.daemon, &bytes[i], 1);
                assert_int_equal(stream_process(&p), i + 1 < n ? 0 : PERFD_E_ENDED);
        }
        assert_string_equal(h.text, STARTED "item 100 mine " VALUES
                                            "end stopped received=1 missed=0 sent=1 balanced=0 exact=1\n");
        close(pipe[0]);
        close(pipe[1]);
        pair_free(&p);
}

static void test_gaps_must_fit(void **state) {
        static const uint64_t gaps[][3] = { { 3, 5, 7 }, { 2, 5, 6 }, { 4, 5, 6 }, { 5, 3, 6 }, { 3, 5, 5 } };
        Heard h;
        Pair p = stream_new(&h);

        play_items(p.daemon, 3, 100, 1); /* 2 is missing */
        assert_int_equal(stream_process(&p), PERFD_E_PROTOCOL);
        assert_int_equal(perfd_client_process(p.client), PERFD_E_STATE);
        assert_string_equal(h.text, STARTED);
        pair_free(&p);
        for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
                p = stream_new(&h);
                play_items(p.daemon, 2, 100, 1);
                play_gap(p.daemon, gaps[i][0], gaps[i][1], gaps[i][2]);
                assert_int_equal(stream_process(&p), PERFD_E_PROTOCOL);
                pair_free(&p);
        }
}

/* A packet with one of them. */
static int process_one(Perfd__V1__Item *item, Perfd__V1__EventDescriptor *event) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Heard h;
        Pair p = stream_new(&h);
        int r;

        packet.sequence = 2;
        packet.items = &item;
        packet.n_items = item != NULL;
        packet.events = &event;
        packet.n_events = event != NULL;
        play_packet(p.daemon, &packet);
        r = stream_process(&p);
        assert_int_equal(h.items, item != NULL);
        if (item && r != 0) /* it was seen to be wrong when it was asked for something, and shows nothing */
                assert_string_equal(h.text, STARTED "item 0 - cpu=0 0/0 swapper/0\n");
        pair_free(&p);
        return r;
}

static void test_items_must_fit(void **state) {
        Perfd__V1__Item item;
        uint64_t numbers[8];

        play_item_init(&item, 1);
        assert_int_equal(process_one(&item, NULL), 0);
        item.event = 8; /* no descriptor came */
        assert_int_equal(process_one(&item, NULL), PERFD_E_PROTOCOL);
        play_item_init(&item, 1);
        item.n_numbers--;
        assert_int_equal(process_one(&item, NULL), PERFD_E_PROTOCOL);
        play_item_init(&item, 1);
        item.n_texts--;
        assert_int_equal(process_one(&item, NULL), PERFD_E_PROTOCOL);
        play_item_init(&item, 1);
        memcpy(numbers, item.numbers, sizeof(numbers));
        numbers[3] = UINT64_MAX; /* the length of the dynamic array */
        item.numbers = numbers;
        assert_int_equal(process_one(&item, NULL), PERFD_E_PROTOCOL);
        numbers[3] = 2;
        assert_int_equal(process_one(&item, NULL), PERFD_E_PROTOCOL);
}

/* Nobody asks for anything in it: then it is an item as any other, and not read. */
static void test_items_of_no_interest(void **state) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks none = PERFD_CALLBACKS_INIT;
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item item, *items[] = { &item };
        Pair p = pair_new();

        play_ok(p.daemon, 2);
        assert_int_equal(perfd_subscribe(p.client, &s, &none, NULL), 0);
        play_start(p.daemon);
        play_item_init(&item, 1);
        item.n_numbers--;
        packet.sequence = 2;
        packet.items = items;
        packet.n_items = 1;
        play_packet(p.daemon, &packet);
        assert_int_equal(stream_process(&p), 0);
        pair_free(&p);
}

/* Whether a stream goes on behind a field of this kind that has names of values, flags, or neither. */
static int process_descriptor(unsigned kind, bool names, bool flags) {
        PlayedDescriptor d;

        play_descriptor_init(&d, true);
        d.fields[!names].kind = (Perfd__V1__FieldKind)kind; /* the first one has names */
        d.fields[!names].flags = flags;
        return process_one(NULL, &d.message);
}

/* Names of numbers that a text does not have would be looked up in none. */
static void test_descriptors_must_fit(void **state) {
        for (unsigned kind = PERFD_UNSIGNED; kind <= PERFD_BYTES; kind++) {
                assert_int_equal(process_descriptor(kind, false, false), 0);
                assert_int_equal(process_descriptor(kind, true, false), kind < PERFD_TEXT ? 0 : PERFD_E_PROTOCOL);
                assert_int_equal(process_descriptor(kind, false, true), kind < PERFD_TEXT ? 0 : PERFD_E_PROTOCOL);
        }
        assert_int_equal(process_descriptor(PERFD_BYTES + 1, false, false), PERFD_E_PROTOCOL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add),
                cmocka_unit_test(test_refusal),
                cmocka_unit_test(test_last_word),
                cmocka_unit_test(test_broken_connections),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_stream_in_pieces),
                cmocka_unit_test(test_gaps_must_fit),
                cmocka_unit_test(test_items_must_fit),
                cmocka_unit_test(test_items_of_no_interest),
                cmocka_unit_test(test_descriptors_must_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
