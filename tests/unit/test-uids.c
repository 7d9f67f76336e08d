/* What the kernel reports of uids: its messages, and the queue in which they wait for what is older than they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>

#include "daemon/kernel/task/uid-socket.h"

typedef struct Message {
        struct nlmsghdr header;
        uint8_t connector[sizeof(struct cn_msg)];
        uint8_t event[sizeof(struct proc_event)];
} Message;

static Message message(uint32_t what, uint32_t pid, uint32_t tgid, uint32_t uid) {
        struct cn_msg connector = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(struct proc_event) };
        struct proc_event event = { .what = what, .timestamp_ns = 77 };
        Message m = { .header = { .nlmsg_len = sizeof(m) } };

        event.event_data.id.process_pid = (int)pid;
        event.event_data.id.process_tgid = (int)tgid;
        event.event_data.id.r.ruid = uid;
        event.event_data.id.e.euid = 5;
        memcpy(m.connector, &connector, sizeof(connector));
        memcpy(m.event, &event, sizeof(event));
        return m;
}

static void test_parse(void **state) {
        Message m = message(PROC_EVENT_UID, 10, 10, 1001);
        UidChange change = { .pid = 0 };

        assert_true(uid_socket_parse(&m, sizeof(m), &change));
        assert_int_equal(change.time, 77);
        assert_int_equal(change.pid, 10);
        assert_int_equal(change.uid, 1001);
        for (size_t length = 0; length < offsetof(Message, event) + offsetof(struct proc_event, event_data); length++)
                assert_false(uid_socket_parse(&m, length, &change));
        m.header.nlmsg_len++;
        assert_false(uid_socket_parse(&m, sizeof(m), &change));
        m = message(PROC_EVENT_UID, 11, 10, 1001); /* a thread alone */
        assert_false(uid_socket_parse(&m, sizeof(m), &change));
        m = message(PROC_EVENT_GID, 10, 10, 1001);
        assert_false(uid_socket_parse(&m, sizeof(m), &change));
        m = message(PROC_EVENT_UID, 10, 10, 1001);
        m.connector[0]++; /* another connector's */
        assert_false(uid_socket_parse(&m, sizeof(m), &change));
}

static void add(UidChanges *c, nsec_t time, uint32_t uid) {
        assert_true(uid_changes_add(c, (UidChange){ .time = time, .pid = 10, .uid = uid }));
}

static void check_next(UidChanges *c, nsec_t until, uint32_t uid) {
        UidChange change = { .uid = 0 };

        assert_int_equal(uid_changes_take(c, until, &change), uid != 0);
        assert_int_equal(change.uid, uid);
}

static void test_order(void **state) {
        UidChanges c = { .list = NULL };
        nsec_t next;

        assert_false(uid_changes_next(&c, &next));
        check_next(&c, UINT64_MAX, 0);
        add(&c, 20, 2);
        add(&c, 10, 1);
        add(&c, 20, 3); /* behind what came first */
        add(&c, 30, 4);
        assert_true(uid_changes_next(&c, &next));
        assert_int_equal(next, 10);
        check_next(&c, 9, 0);
        check_next(&c, 10, 1);
        check_next(&c, 25, 2);
        check_next(&c, 25, 3);
        check_next(&c, 25, 0);
        add(&c, 5, 5); /* older than what was taken */
        check_next(&c, 25, 5);
        check_next(&c, 30, 4);
        check_next(&c, UINT64_MAX, 0);
        uid_changes_deinit(&c);
}

static void test_bound(void **state) {
        UidChanges c = { .list = NULL };

        for (size_t i = 0; i < UID_CHANGES_MAX; i++)
                add(&c, i, (uint32_t)i + 1);
        assert_false(uid_changes_add(&c, (UidChange){ .time = 1, .pid = 1 }));
        for (size_t i = 0; i < UID_CHANGES_MAX / 4; i++)
                check_next(&c, UINT64_MAX, (uint32_t)i + 1);
        for (size_t i = 0; i < UID_CHANGES_MAX / 4; i++)
                add(&c, UID_CHANGES_MAX + i, (uint32_t)(UID_CHANGES_MAX + i) + 1);
        assert_false(uid_changes_add(&c, (UidChange){ .time = 1, .pid = 1 }));
        for (size_t i = UID_CHANGES_MAX / 4; i < UID_CHANGES_MAX + UID_CHANGES_MAX / 4; i++)
                check_next(&c, UINT64_MAX, (uint32_t)i + 1);
        uid_changes_deinit(&c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
