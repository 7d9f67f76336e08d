/*
 * What the kernel says of CPUs: its messages, and what may come instead of them on a socket, by a recvmsg(2) that is
 * played.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/host/hotplug.h"
#include "daemon/kernel/task/tasks.h"

#define MESSAGE(text) { text, sizeof(text) }
#define REST(action, cpu)                                                                                              \
        "ACTION=" action "\0DEVPATH=/devices/system/cpu/cpu" cpu "\0SUBSYSTEM=cpu\0DRIVER=processor\0SEQNUM=1234"

typedef struct Message {
        const char *text;
        size_t length;
} Message;

static const Message online_3 = MESSAGE("online@/devices/system/cpu/cpu3\0" REST("online", "3"));
static const Message offline_12 = MESSAGE("offline@/devices/system/cpu/cpu12\0" REST("offline", "12"));

static void test_parse(void **state) {
        static const struct {
                Message message;
                int cpu; /* -1: none */
                bool online;
        } rows[] = {
                { MESSAGE("online@/devices/system/cpu/cpu3\0" REST("online", "3")), 3, true },
                { MESSAGE("offline@/devices/system/cpu/cpu0\0" REST("offline", "0")), 0, false },
                { MESSAGE("offline@/devices/system/cpu/cpu8191"), 8191, false },
                { MESSAGE("offline@/devices/system/cpu/cpu8192"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu99999999999999999999"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu03"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu+3"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu3/x"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpufreq"), -1, false },
                { MESSAGE("online@/devices/system/memory/memory3"), -1, false },
                { MESSAGE("add@/devices/system/cpu/cpu3\0" REST("add", "3")), -1, false },
                { MESSAGE("remove@/devices/system/cpu/cpu3"), -1, false },
                { MESSAGE("libudev"), -1, false },
                { MESSAGE("online@/devices/system/cpu/cpu3\0" REST("online", "3") "\0SYNTH_UUID=0"), -1, false },
                { { "online@/devices/system/cpu/cpu3", strlen("online@/devices/system/cpu/cpu3") }, -1, false },
                { { "", 0 }, -1, false },
                { { "", 1 }, -1, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                bool online = !rows[i].online;
                uint32_t cpu = 77;
                int r = hotplug_parse(rows[i].message.text, rows[i].message.length, &cpu, &online);

                assert_int_equal(r, rows[i].cpu < 0 ? HOTPLUG_E_NONE : 0);
                assert_int_equal(cpu, rows[i].cpu < 0 ? 77 : rows[i].cpu);
                assert_int_equal(online, rows[i].cpu < 0 ? !rows[i].online : rows[i].online);
        }
}

/* What recvmsg(2) gives next. */
typedef struct OwnerLock {
        int error; /* 0: the message */
        const Message *message;
        uint32_t port;
        uid_t uid;
        bool is_foreign; /* not even a netlink address */
        bool is_cut;
} OwnerLock;

static const OwnerLock *turns; /* NULL: the real one */
static size_t n_turns;

ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags) {
        struct sockaddr_nl sender = { .nl_family = AF_NETLINK };
        struct ucred who = { .pid = 0 };
        struct cmsghdr *c;
        const OwnerLock *t;

        if (!turns)
                return __real_recvmsg(fd, m, flags);
        assert_int_equal(flags, MSG_DONTWAIT);
        errno = EAGAIN;
        if (n_turns == 0)
                return -1;
        n_turns--;
        t = turns++;
        errno = t->error;
        if (t->error)
                return -1;
        sender.nl_pid = t->port;
        if (t->is_foreign)
                m->msg_namelen = 0;
        else
                memcpy(m->msg_name, &sender, sizeof(sender));
        who.uid = t->uid;
        c = CMSG_FIRSTHDR(m);
        assert_non_null(c);
        *c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(who)), .cmsg_level = SOL_SOCKET,
                               .cmsg_type = SCM_CREDENTIALS };
        memcpy(CMSG_DATA(c), &who, sizeof(who));
        assert_true(t->message->length <= m->msg_iov->iov_len);
        memcpy(m->msg_iov->iov_base, t->message->text, t->message->length);
        m->msg_flags = t->is_cut ? MSG_TRUNC : 0;
        return (ssize_t)t->message->length;
}

static void check_next(int code, uint32_t cpu, bool online) {
        uint32_t got_cpu = 77;
        bool got_online = !online;

        assert_int_equal(hotplug_next(-1, &got_cpu, &got_online), code);
        assert_int_equal(got_cpu, code == 0 ? cpu : 77);
        assert_int_equal(got_online, code == 0 ? online : !online);
}

static void test_next(void **state) {
        static const Message other = MESSAGE("online@/devices/virtual/mem/null");
        static const OwnerLock played[] = {
                { .message = &online_3 },
                { .error = EINTR },
                { .message = &other },
                { .message = &online_3, .port = 4711 }, /* a process */
                { .message = &online_3, .uid = 1000 },
                { .message = &online_3, .is_foreign = true },
                { .message = &online_3, .is_foreign = true, .is_cut = true },
                { .message = &offline_12 },
                { .error = ENOBUFS },
                { .message = &offline_12 },
                { .message = &online_3, .is_cut = true },
                { .error = EAGAIN },
                { .error = EBADF },
        };

        turns = played;
        n_turns = ARRAY_SIZE(played);
        check_next(0, 3, true);
        check_next(0, 12, false);
        check_next(HOTPLUG_E_OVERRUN, 0, false);
        check_next(0, 12, false);
        check_next(HOTPLUG_E_OVERRUN, 0, false);
        check_next(HOTPLUG_E_NONE, 0, false);
        check_next(-EBADF, 0, false);
        assert_int_equal(n_turns, 0);
        turns = NULL;
}

/* Other devices' words without end do not keep the caller. */
static void test_many(void **state) {
        static OwnerLock many[3000];
        static const Message other = MESSAGE("online@/devices/virtual/mem/null");

        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                many[i].message = &other;
        turns = many;
        n_turns = ARRAY_SIZE(many);
        check_next(HOTPLUG_E_NONE, 0, false);
        assert_int_equal(n_turns, 2000);
        turns = NULL;
}

static void test_open(void **state) {
        uint32_t cpu;
        bool online;
        int fd = -1, r = hotplug_open(&fd);

        if (r == -EAFNOSUPPORT || r == -EPERM || r == -EPROTONOSUPPORT)
                skip(); /* a sandbox without netlink */
        assert_int_equal(r, 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        do {
                r = hotplug_next(fd, &cpu, &online); /* should a CPU of this host come just now */
        } while (r == 0);
        assert_int_equal(r, HOTPLUG_E_NONE);
        close(fd);
}

/* Each CPU that is online can be there. */
static void test_possible(void **state) {
        _cleanup_free_ uint32_t *possible = NULL, *online = NULL;
        size_t n_possible = 0, n_online = 0, i = 0;

        assert_int_equal(cpus_possible(&possible, &n_possible, NULL), 0);
        assert_int_equal(cpus_online(&online, &n_online, NULL), 0);
        assert_true(n_online >= 1 && n_possible >= n_online);
        for (size_t k = 0; k < n_online; k++) {
                while (i < n_possible && possible[i] < online[k])
                        i++;
                assert_true(i < n_possible && possible[i] == online[k]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse), cmocka_unit_test(test_next),     cmocka_unit_test(test_many),
                cmocka_unit_test(test_open),  cmocka_unit_test(test_possible),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
