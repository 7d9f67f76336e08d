#include "daemon/kernel/task/uid-socket.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MESSAGE_MAX 1024 /* some ten times what the kernel makes */
#define DRAIN_MAX 10000   /* what a busy host reports within the moment in which all was wanted */
#define BUFFER_SIZE (4 * 1024 * 1024) /* the kernel allows what net.core.rmem_max does */

/* What the kernel takes since 6.6, before the event types only: headers of 2022 do not have it. */
typedef struct Wish {
        uint32_t op, events;
} Wish;

typedef struct Request {
        struct nlmsghdr header;
        uint8_t connector[sizeof(struct cn_msg)];
        Wish wish;
} Request;

/* With `length` of the operation alone it is for all events, and answered: what a kernel of any age understands. */
static int ask(int fd, enum proc_cn_mcast_op op, size_t length) {
        const struct cn_msg connector = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = (uint16_t)length };
        Request q = { .header = { .nlmsg_len = (uint32_t)(offsetof(Request, wish) + length), .nlmsg_type = NLMSG_DONE },
                      .wish = { op, PROC_EVENT_UID } };

        memcpy(q.connector, &connector, sizeof(connector));
        return send(fd, &q, q.header.nlmsg_len, 0) < 0 ? error_origin(-errno) : 0;
}

/* The event of a message of the kernel. */
static bool event_of(const void *message, size_t length, struct proc_event *ret) {
        const size_t begin = NLMSG_HDRLEN + sizeof(struct cn_msg);
        struct nlmsghdr header;
        struct cn_msg connector;

        if (length < begin + offsetof(struct proc_event, event_data) + sizeof(ret->event_data.id))
                return false;
        memcpy(&header, message, sizeof(header));
        memcpy(&connector, (const uint8_t *)message + NLMSG_HDRLEN, sizeof(connector));
        if (header.nlmsg_len > length || connector.id.idx != CN_IDX_PROC || connector.id.val != CN_VAL_PROC)
                return false;
        *ret = (struct proc_event){ .what = PROC_EVENT_NONE };
        length -= begin;
        memcpy(ret, (const uint8_t *)message + begin, length < sizeof(*ret) ? length : sizeof(*ret));
        return true;
}

bool uid_socket_parse(const void *message, size_t length, UidChange *ret) {
        struct proc_event event;

        if (!event_of(message, length, &event) || event.what != PROC_EVENT_UID ||
            event.event_data.id.process_pid != event.event_data.id.process_tgid)
                return false;
        *ret = (UidChange){ .time = event.timestamp_ns, .pid = (uint32_t)event.event_data.id.process_tgid,
                            .uid = event.event_data.id.r.ruid };
        return true;
}

/* Only the kernel is listened to: a message of a process has its port. */
static ssize_t read_message(int fd, void *message, size_t size) {
        struct sockaddr_nl from = { .nl_pid = 0 };
        socklen_t length = sizeof(from);
        ssize_t n = recvfrom(fd, message, size, MSG_DONTWAIT, (struct sockaddr *)&from, &length);

        return n > 0 && from.nl_pid != 0 ? 0 : n;
}

/* A kernel that does not serve us says nothing: the answer is in the socket when send(2) returns. */
static bool is_answered(int fd) {
        uint8_t message[MESSAGE_MAX];
        struct proc_event event;
        ssize_t n;

        for (int i = 0; i < DRAIN_MAX && (n = read_message(fd, message, sizeof(message))) >= 0; i++)
                if (event_of(message, (size_t)n, &event) && event.what == PROC_EVENT_NONE)
                        return event.event_data.ack.err == 0;
        return false;
}

/*
 * A kernel before 6.6 does not understand that only some events are wanted, and says nothing of it: it goes on to report all. So when
 * nothing is wanted, an event of our own, that of a thread that is given the name that it has, must not come.
 */
static bool is_quiet(int fd) {
        uint8_t message[MESSAGE_MAX];
        char name[16];

        for (int i = 0; i < DRAIN_MAX && (read_message(fd, message, sizeof(message)) >= 0 || errno == ENOBUFS); i++)
                ;
        (void)prctl(PR_GET_NAME, name);
        (void)prctl(PR_SET_NAME, name);
        return read_message(fd, message, sizeof(message)) < 0 && errno == EAGAIN;
}

static int refuse_socket(Explanation *e, const char *what) {
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s: this needs Linux 6.6 with CONFIG_PROC_EVENTS, and the host's own network "
                      "and pid namespaces", what);
}

int uid_socket_open(int *ret_fd, Explanation *e) {
        struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
        const int size = BUFFER_SIZE;
        _cleanup_close_ int fd = -1;

        thread_assert(THREAD_MAIN);
        fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return refuse_socket(e, strerror(errno));
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
        if (ask(fd, PROC_CN_MCAST_LISTEN, sizeof(uint32_t)) < 0 || !is_answered(fd))
                return refuse_socket(e, "the kernel does not answer");
        if (uid_socket_listen(fd, false) < 0 || !is_quiet(fd))
                return refuse_socket(e, "the kernel reports more than it is asked for");
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int uid_socket_listen(int fd, bool on) {
        int r = ask(fd, on ? PROC_CN_MCAST_LISTEN : PROC_CN_MCAST_IGNORE, sizeof(Wish));

        return r < 0 ? error_origin(r) : 0;
}

int uid_socket_read(int fd, clockid_t clock, UidChange *ret) {
        uint8_t message[MESSAGE_MAX];
        ssize_t n;

        while ((n = read_message(fd, message, sizeof(message))) >= 0)
                if (uid_socket_parse(message, (size_t)n, ret)) {
                        if (clock != CLOCK_MONOTONIC)
                                ret->time += clock_now(clock) - clock_now(CLOCK_MONOTONIC);
                        return 0;
                }
        return errno == EAGAIN ? UID_SOCKET_E_END : UID_SOCKET_E_LOST;
}
