/*
 * Who did what, as a subscriber hears it: a played reader for each of two CPUs, notes and items in batches as they come,
 * and the frames that come out at the other end, as one line:
 *
 *     (20 sh /bin/sh)     a packet describes task 20, with its process; (20 sh) without
 *     [30:20]             an item of 30 ns and tid 20
 *     -20                 a packet says that task 20 is forgotten
 *     |                   between two packets
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "daemon/dispatcher/cycle.h"

#define N_PIPES 2
#define N_PEERS 3
#define EVENT 7

typedef struct Rig {
        Queue full[N_PIPES], free[N_PIPES];
        atomic_bool needs_batch[N_PIPES];
        Mailbox readers[N_PIPES];
        BatchPipe pipes[N_PIPES];
        Dispatcher dispatcher;
        int peers[N_PEERS];
        size_t n_peers;
        Batch *batch;
        char heard[512];
} Rig;

static void rig_init(Rig *r) {
        memset(r, 0, sizeof(*r));
        for (int i = 0; i < N_PIPES; i++) {
                assert_int_equal(queue_init(&r->full[i], 8), 0);
                assert_int_equal(queue_init(&r->free[i], 8), 0);
                assert_int_equal(mailbox_init(&r->readers[i], 2), 0);
                r->pipes[i] = (BatchPipe){ &r->full[i], &r->free[i], &r->needs_batch[i], &r->readers[i] };
        }
        r->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC };
        assert_int_equal(dispatcher_init(&r->dispatcher, r->pipes, N_PIPES, N_PEERS), 0);
}

static void rig_subscribe(Rig *r, StreamOrder order, unsigned bit) {
        Subscriber *s = calloc(1, sizeof(*s));
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        *s = (Subscriber){ .id = r->n_peers + 1, .fd = fds[0], .order = order, .number = bit, .since = 1,
                           .queue_bytes = 1 << 20 };
        r->peers[r->n_peers++] = fds[1];
        assert_int_equal(dispatcher_subscribe(&r->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&r->dispatcher, s->id), 0);
}

static void rig_deinit(Rig *r) {
        Batch *b;

        dispatcher_deinit(&r->dispatcher);
        for (int i = 0; i < N_PIPES; i++) {
                while ((b = queue_pop(&r->free[i])))
                        batch_free(b);
                queue_deinit(&r->full[i]);
                queue_deinit(&r->free[i]);
                mailbox_deinit(&r->readers[i]);
        }
        for (size_t i = 0; i < r->n_peers; i++)
                close_fd(r->peers[i]);
}

static void begin(Rig *r, uint32_t slot) {
        r->batch = queue_pop(&r->free[slot]);
        r->batch = r->batch ? r->batch : batch_new(slot);
        assert_non_null(r->batch);
        batch_reset(r->batch, 1);
}

static void put_item(Rig *r, nsec_t time, uint32_t tid, uint64_t mask) {
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        size_t room;

        item.time = time;
        item.tid = tid;
        packet.items = items;
        packet.n_items = 1;
        batch_append(r->batch, time, mask, EVENT, tid, perfd__v1__packet__pack(&packet, batch_room(r->batch, &room)));
}

static void put_note(Rig *r, nsec_t time, TaskNoteKind kind, uint32_t tid, uint32_t parent, const char *text) {
        TaskNote n = { .kind = kind, .pid = tid, .tid = tid, .parent_pid = parent, .parent_tid = parent, .text = text,
                       .n_text = text ? (uint32_t)strlen(text) : 0 };
        size_t room;
        uint8_t *to = batch_room(r->batch, &room);

        batch_append(r->batch, time, 0, BATCH_MARKER, tid, task_note_put(&n, to, room));
}

static void turn(Rig *r) {
        assert_int_equal(dispatcher_release(&r->dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r->dispatcher), 0);
        assert_int_equal(dispatcher_prune_tasks(&r->dispatcher), 0);
}

static void end(Rig *r, nsec_t watermark) {
        r->batch->watermark = watermark;
        batch_seal(r->batch);
        assert_int_equal(dispatcher_take_batch(&r->dispatcher, TAKE_PTR(r->batch)), 0);
        turn(r);
}

static void hear(Rig *r, const char *format, ...) {
        size_t n = strlen(r->heard);
        va_list list;

        va_start(list, format);
        (void)vsnprintf(r->heard + n, sizeof(r->heard) - n, format, list);
        va_end(list);
}

static void hear_packet(Rig *r, const Perfd__V1__Packet *p) {
        for (size_t i = 0; i < p->n_forgotten_tasks; i++)
                hear(r, "-%u", p->forgotten_tasks[i]);
        for (size_t i = 0; i < p->n_tasks; i++) {
                const Perfd__V1__Task *t = p->tasks[i];

                hear(r, "(%u %.*s", t->tid, (int)t->comm.len, (const char *)t->comm.data);
                if (t->process)
                        hear(r, " %.*s", (int)t->process->executable.len, (const char *)t->process->executable.data);
                hear(r, ")");
        }
        for (size_t i = 0; i < p->n_items; i++)
                hear(r, "[%d:%u]", (int)p->items[i]->time, p->items[i]->tid);
        hear(r, "|");
}

static void check_heard(Rig *r, size_t peer, const char *expected) {
        static uint8_t bytes[1 << 16];
        ssize_t n = recv(r->peers[peer], bytes, sizeof(bytes), MSG_DONTWAIT);
        uint32_t length;

        r->heard[0] = '\0';
        for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(length) + length)) {
                Perfd__V1__ServerMessage *m;

                memcpy(&length, bytes + at, sizeof(length));
                m = perfd__v1__server_message__unpack(NULL, length, bytes + at + sizeof(length));
                assert_non_null(m);
                hear_packet(r, m->packet);
                perfd__v1__server_message__free_unpacked(m, NULL);
        }
        assert_string_equal(r->heard, expected);
}

static void learn(Rig *r, nsec_t time) {
        ScannedThread thread = { 10, "sh" };
        ScannedProcess p = { .pid = 10, .parent = 1, .time = time, .executable = (char *)"/bin/sh", .threads = &thread,
                             .n_threads = 1 };

        assert_int_equal(dispatcher_learn(&r->dispatcher, &(TaskScan){ .begin = time, .processes = &p, .n = 1 }), 0);
}

/* In the order of time it is exact, whatever comes when. */
static void test_by_time(void **state) {
        Rig r;

        rig_init(&r);
        learn(&r, 1);
        rig_subscribe(&r, STREAM_BY_TIME, 0);
        begin(&r, 1);
        put_item(&r, 20, 20, 1);
        put_note(&r, 30, TASK_NOTE_EXEC, 20, 0, "true");
        put_note(&r, 31, TASK_NOTE_MAP, 20, 0, "/bin/true");
        put_item(&r, 40, 20, 1);
        put_item(&r, 50, 10, 1);
        put_item(&r, 51, 77, 1); /* nobody knows */
        put_item(&r, 60, 20, 1);
        put_note(&r, 70, TASK_NOTE_EXIT, 20, 0, NULL);
        put_item(&r, 71, 20, 1); /* its last one */
        end(&r, 100);
        check_heard(&r, 0, "");
        begin(&r, 0);
        put_note(&r, 10, TASK_NOTE_FORK, 20, 10, NULL);
        put_item(&r, 55, 10, 1);
        end(&r, 90);
        check_heard(&r, 0, "(20 sh /bin/sh)|[20:20]|(20 true /bin/true)(10 sh /bin/sh)|[40:20][50:10][51:77][55:10][60:20][71:20]|");

        begin(&r, 0);
        put_note(&r, 110, TASK_NOTE_FORK, 20, 10, NULL); /* the pid, used again */
        put_item(&r, 111, 20, 1);
        put_note(&r, 112, TASK_NOTE_COMM, 10, 0, "bash");
        put_item(&r, 113, 20, 1);
        put_item(&r, 114, 10, 1);
        end(&r, 200);
        begin(&r, 1);
        end(&r, 200);
        check_heard(&r, 0, "(20 sh /bin/sh)|[111:20][113:20]|(10 bash)|[114:10]|");
        rig_deinit(&r);
}

/* A batch of nothing but notes has to wait for its time as well. */
static void test_notes_alone(void **state) {
        Rig r;

        rig_init(&r);
        learn(&r, 1);
        rig_subscribe(&r, STREAM_BY_TIME, 0);
        begin(&r, 0);
        put_note(&r, 30, TASK_NOTE_COMM, 10, 0, "later");
        end(&r, 100);
        begin(&r, 1);
        put_item(&r, 20, 10, 1);
        put_item(&r, 40, 10, 1);
        end(&r, 100);
        check_heard(&r, 0, "(10 sh /bin/sh)|[20:10]|(10 later)|[40:10]|");
        assert_int_equal(r.dispatcher.merge.n, 0);
        rig_deinit(&r);
}

/* In the order of each CPU it is what has come so far. */
static void test_by_cpu(void **state) {
        Rig r;

        rig_init(&r);
        learn(&r, 1);
        rig_subscribe(&r, STREAM_BY_CPU, 0);
        begin(&r, 1);
        put_item(&r, 20, 20, 1);
        put_note(&r, 30, TASK_NOTE_EXEC, 20, 0, "true");
        put_item(&r, 40, 20, 1);
        end(&r, 100);
        check_heard(&r, 0, "(20 true )|[20:20][40:20]|");
        begin(&r, 0);
        put_note(&r, 10, TASK_NOTE_FORK, 20, 10, NULL);
        put_note(&r, 35, TASK_NOTE_MAP, 20, 0, "/bin/true");
        put_item(&r, 50, 20, 1);
        end(&r, 100);
        check_heard(&r, 0, "(20 true /bin/true)|[50:20]|");
        rig_deinit(&r);
}

/* Who comes later is told again, to both; what another channel was told is its own. */
static void test_newcomer(void **state) {
        Rig r;

        rig_init(&r);
        learn(&r, 1);
        rig_subscribe(&r, STREAM_BY_CPU, 0);
        begin(&r, 0);
        put_item(&r, 20, 10, 3);
        end(&r, 100);
        rig_subscribe(&r, STREAM_BY_CPU, 0);
        rig_subscribe(&r, STREAM_BY_CPU, 1);
        begin(&r, 0);
        put_item(&r, 120, 10, 1);
        put_item(&r, 121, 10, 2);
        put_item(&r, 122, 10, 3);
        end(&r, 200);
        check_heard(&r, 0, "(10 sh /bin/sh)|[20:10]|(10 sh /bin/sh)|[120:10][122:10]|");
        check_heard(&r, 1, "(10 sh /bin/sh)|[120:10][122:10]|");
        check_heard(&r, 2, "(10 sh /bin/sh)|[121:10][122:10]|");
        rig_deinit(&r);
}

/* More have ended than are kept: only those that the stream has heard of are said to be forgotten. */
static void test_forgotten(void **state) {
        Rig r;

        rig_init(&r);
        rig_subscribe(&r, STREAM_BY_CPU, 0);
        for (uint32_t tid = 1000; tid <= 1000 + TASKS_ENDED_MAX;) {
                begin(&r, 0);
                for (unsigned i = 0; i < 100 && tid <= 1000 + TASKS_ENDED_MAX; i++, tid++) {
                        put_note(&r, tid, TASK_NOTE_COMM, tid, 0, "x");
                        if (tid % 1024 == 0)
                                put_item(&r, tid, tid, 1);
                        put_note(&r, tid, TASK_NOTE_EXIT, tid, 0, NULL);
                }
                end(&r, tid);
        }
        turn(&r);
        check_heard(&r, 0, "(1024 x )|[1024:1024]|(2048 x )|[2048:2048]|(3072 x )|[3072:3072]|(4096 x )|[4096:4096]|"
                           "-1024-2048|");
        assert_int_equal(r.dispatcher.tasks[STREAM_BY_CPU].n, TASKS_ENDED_MAX / 2);
        assert_int_equal(counter_get(&r.dispatcher.tasks_forgotten), 0);
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_by_time),  cmocka_unit_test(test_notes_alone), cmocka_unit_test(test_by_cpu),
                cmocka_unit_test(test_newcomer), cmocka_unit_test(test_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
