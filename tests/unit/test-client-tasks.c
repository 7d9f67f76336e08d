/*
 * What the library knows of tasks at each item of a stream, as one line: who the item's thread is, by what was said of it
 * and of its process up to there, in whatever packet and order of fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/socket.h>

#include "client/perfd.h"
#include "tests/unit/played-stream.h"

typedef struct Heard {
        char text[2048];
        size_t length;
} Heard;

static void hear(Heard *h, const char *format, ...) {
        va_list list;

        va_start(list, format);
        h->length += (size_t)vsnprintf(h->text + h->length, sizeof(h->text) - h->length, format, list);
        va_end(list);
}

/* "TID:COMM/PID EXECUTABLE CGROUP UID|" */
static void on_item(void *userdata, const perfd_item *item) {
        const perfd_process *p = perfd_item_process(item);
        const perfd_task *t = perfd_item_task(item);
        perfd_text comm = perfd_item_comm(item);

        hear(userdata, "%u:%.*s", perfd_item_tid(item), (int)comm.length, comm.bytes);
        assert_true((t != NULL) == (p != NULL) && (!t || t->process == p));
        if (p)
                hear(userdata, "/%u %.*s %.*s ", p->pid, (int)p->executable.length, p->executable.bytes, (int)p->cgroup.length,
                     p->cgroup.bytes);
        if (p && p->has_uid)
                hear(userdata, "%u", p->uid);
        hear(userdata, "|");
}

static const perfd_callbacks callbacks = { .size = sizeof(callbacks), .item = on_item };

typedef struct Rig {
        perfd_client *client;
        int daemon;
        uint64_t sequence;
        Heard heard;
        uint8_t packet[4096]; /* without its sequence: parts one after the other are one message */
        size_t n;
} Rig;

static void rig_init(Rig *r) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        Perfd__V1__Packet start = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart message = PERFD__V1__STREAM_START__INIT;
        int fds[2];

        *r = (Rig){ .sequence = 1 };
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        r->daemon = fds[1];
        r->client = perfd_client_new("test");
        assert_non_null(r->client);
        play_hello(r->daemon, 1);
        assert_int_equal(perfd_client_connect_fd(r->client, fds[0]), 0);
        play_ok(r->daemon, 2);
        start.sequence = 1;
        start.start = &message;
        play_packet(r->daemon, &start);
        assert_int_equal(perfd_subscribe(r->client, &s, &callbacks, &r->heard), 0);
}

static void rig_deinit(Rig *r) {
        perfd_client_free(r->client);
        close(r->daemon);
}

static void add_part(Rig *r, const Perfd__V1__Packet *part) {
        r->n += perfd__v1__packet__pack(part, r->packet + r->n);
}

/* executable NULL: without its process. */
static void put_task(Rig *r, uint32_t pid, uint32_t tid, const char *comm, const char *executable, const char *cgroup,
                     int uid) {
        Perfd__V1__Packet part = PERFD__V1__PACKET__INIT;
        Perfd__V1__Task task = PERFD__V1__TASK__INIT, *tasks[] = { &task };
        Perfd__V1__Process process = PERFD__V1__PROCESS__INIT;

        task.pid = pid;
        task.tid = tid;
        task.comm = play_text(comm, strlen(comm));
        part.tasks = tasks;
        part.n_tasks = 1;
        if (executable) {
                process.executable = play_text(executable, strlen(executable));
                process.cgroup = play_text(cgroup, strlen(cgroup));
                if (uid >= 0) {
                        process.known_uid_case = PERFD__V1__PROCESS__KNOWN_UID_UID;
                        process.uid = (uint32_t)uid;
                }
                task.process = &process;
        }
        add_part(r, &part);
}

static void put_item_of(Rig *r, uint32_t tid, unsigned zero_tid) {
        Perfd__V1__Packet part = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };
        Perfd__V1__CommRecord record = PERFD__V1__COMM_RECORD__INIT;

        item.tid = tid;
        item.cpu = 3;
        item.zero_tid = (Perfd__V1__ZeroTid)zero_tid;
        item.record_case = PERFD__V1__ITEM__RECORD_COMM_RECORD; /* it needs no descriptor */
        item.comm_record = &record;
        part.items = items;
        part.n_items = 1;
        add_part(r, &part);
}

static void put_item(Rig *r, uint32_t tid) {
        put_item_of(r, tid, PERFD__V1__ZERO_TID__ZERO_TID_NONE);
}

/* A sample without fields, of an event of this name. */
static void put_sample(Rig *r, const char *event, uint32_t tid) {
        Perfd__V1__Packet part = PERFD__V1__PACKET__INIT;
        Perfd__V1__EventDescriptor descriptor = PERFD__V1__EVENT_DESCRIPTOR__INIT, *descriptors[] = { &descriptor };
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };

        descriptor.id = item.event = 9;
        descriptor.name = (char *)"mine";
        descriptor.event = (char *)event;
        item.tid = tid;
        item.cpu = 3;
        part.events = descriptors;
        part.n_events = 1;
        part.items = items;
        part.n_items = 1;
        add_part(r, &part);
}

static void put_forgotten(Rig *r, uint32_t a, uint32_t b) {
        Perfd__V1__Packet part = PERFD__V1__PACKET__INIT;
        uint32_t tids[] = { a, b };

        part.forgotten_tasks = tids;
        part.n_forgotten_tasks = 2;
        add_part(r, &part);
}

static int send_packet(Rig *r) {
        Perfd__V1__Packet *packet = perfd__v1__packet__unpack(NULL, r->n, r->packet);
        int code;

        assert_non_null(packet);
        packet->sequence = ++r->sequence;
        r->n = 0;
        play_packet(r->daemon, packet);
        perfd__v1__packet__free_unpacked(packet, NULL);
        code = perfd_client_process(r->client);
        return code;
}

static void check_heard(Rig *r, const char *expected) {
        assert_int_equal(send_packet(r), 0);
        assert_string_equal(r->heard.text, expected);
        r->heard = (Heard){ .length = 0 };
}

/* A client that emits a sample need not say of which thread it is; the kernel always says it. */
static void test_nobody(void **state) {
        Rig r;

        rig_init(&r);
        put_sample(&r, "external:deploy", 0);
        check_heard(&r, "0:|");
        put_task(&r, 4, 4, "ann", "/bin/ann", "/", 0);
        put_sample(&r, "external:deploy", 4);
        check_heard(&r, "4:ann/4 /bin/ann / 0|");
        put_sample(&r, "externally:deploy", 0);
        check_heard(&r, "0:swapper/3|");
        rig_deinit(&r);
}

/* What perfd says in a pid namespace of its own, where tid 0 is described too. */
static void test_zero_tid(void **state) {
        static const char *const heard[] = { "0:idle-or-outside/0   |", "0:swapper/3|", "0:outside|", "0:idle-or-outside/0   |",
                                             "0:idle-or-outside/0   |" /* what a later daemon may say */ };
        Rig r;

        rig_init(&r);
        put_task(&r, 0, 0, "idle-or-outside", "", "", -1);
        for (unsigned i = 0; i < sizeof(heard) / sizeof(heard[0]); i++) {
                put_item_of(&r, 0, i);
                check_heard(&r, heard[i]);
        }
        put_task(&r, 20, 20, "main", "/bin/x", "/a", 1000);
        put_item_of(&r, 20, PERFD__V1__ZERO_TID__ZERO_TID_OUTSIDE); /* of no tid but 0 */
        check_heard(&r, "20:main/20 /bin/x /a 1000|");
        rig_deinit(&r);
}

static void test_tasks(void **state) {
        Rig r;

        rig_init(&r);
        put_item(&r, 20);
        put_item(&r, 0);
        check_heard(&r, "20:|0:swapper/3|");
        put_item(&r, 20); /* in the same packet, whatever comes first on the wire */
        put_task(&r, 20, 20, "main", "/bin/x", "/a", 1000);
        put_task(&r, 20, 21, "helper", NULL, NULL, -1);
        put_item(&r, 21);
        check_heard(&r, "20:main/20 /bin/x /a 1000|21:helper/20 /bin/x /a 1000|");
        put_item(&r, 21);
        check_heard(&r, "21:helper/20 /bin/x /a 1000|");

        put_task(&r, 20, 20, "main", "/bin/x", "/b", -1); /* moved: all of its threads are */
        put_item(&r, 21);
        put_item(&r, 20);
        check_heard(&r, "21:helper/20 /bin/x /b |20:main/20 /bin/x /b |");
        put_task(&r, 20, 21, "renamed", NULL, NULL, -1);
        put_item(&r, 21);
        check_heard(&r, "21:renamed/20 /bin/x /b |");
        put_task(&r, 21, 21, "other", "/bin/y", "/c", 0); /* the tid is used again, by another process */
        put_item(&r, 21);
        put_item(&r, 20);
        check_heard(&r, "21:other/21 /bin/y /c 0|20:main/20 /bin/x /b |");

        put_forgotten(&r, 20, 99);
        put_item(&r, 20);
        put_item(&r, 21);
        check_heard(&r, "20:|21:other/21 /bin/y /c 0|");
        put_task(&r, 20, 22, "new", NULL, NULL, -1); /* its process was forgotten with its last task */
        put_item(&r, 22);
        check_heard(&r, "22:new/20   |");
        put_forgotten(&r, 21, 22);
        put_task(&r, 22, 22, "again", "/bin/z", "", 7); /* forgotten is what was before */
        put_item(&r, 21);
        put_item(&r, 22);
        check_heard(&r, "21:|22:again/22 /bin/z  7|");
        rig_deinit(&r);
}

/* More than the first buckets, in one process and in many. */
static void test_many(void **state) {
        char expected[64];
        Rig r;

        rig_init(&r);
        for (uint32_t i = 1; i <= 3000; i++) {
                put_task(&r, i % 2 ? i : 2, i, "t", i % 2 || i == 2 ? "/x" : NULL, "", -1);
                if (i % 50 == 0)
                        check_heard(&r, "");
        }
        for (uint32_t i = 1; i <= 3000; i += 7) {
                put_item(&r, i);
                (void)snprintf(expected, sizeof(expected), "%u:t/%u /x  |", i, i % 2 ? i : 2);
                check_heard(&r, expected);
        }
        for (uint32_t i = 1; i <= 3000; i += 2)
                put_forgotten(&r, i, i), check_heard(&r, "");
        put_item(&r, 7);
        put_item(&r, 8);
        check_heard(&r, "7:|8:t/2 /x  |");
        rig_deinit(&r);
}

/* Not what it says to be. */
static void test_malformed(void **state) {
        static const uint8_t bad_task[] = { 0x42, 2, 0x1a, 9 }, bad_list[] = { 0x4a, 1, 0x80 };
        static const struct {
                const uint8_t *bytes;
                size_t n;
        } bad[] = { { bad_task, sizeof(bad_task) }, { bad_list, sizeof(bad_list) } };

        for (size_t i = 0; i < 2; i++) {
                uint8_t frame[32] = { 0 }, *at = frame + 4;
                Rig r;

                rig_init(&r);
                *at++ = 0x12; /* ServerMessage.packet */
                *at++ = (uint8_t)(2 + bad[i].n);
                *at++ = 0x08; /* Packet.sequence */
                *at++ = 2;
                memcpy(at, bad[i].bytes, bad[i].n);
                at += bad[i].n;
                frame[0] = (uint8_t)(at - frame - 4);
                assert_int_equal(write(r.daemon, frame, (size_t)(at - frame)), at - frame);
                assert_int_equal(perfd_client_process(r.client), PERFD_E_PROTOCOL);
                rig_deinit(&r);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tasks), cmocka_unit_test(test_nobody),
                cmocka_unit_test(test_zero_tid),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_malformed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
