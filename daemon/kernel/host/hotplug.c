/*
 * The kernel tells all devices' events to all who listen, and a host that starts containers has many of them. A socket
 * filter lets only what begins like "online" or "offline" through, so that the rest neither wakes us nor fills the
 * socket's buffer.
 *
 * Only the kernel is listened to: a message of a process has its port, and the credentials that the kernel gives it.
 */
#include "daemon/kernel/host/hotplug.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"
#include "daemon/base/thread.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define GROUP_KERNEL 1    /* group 2 is udev's */
#define MESSAGE_MAX 8192  /* four times what the kernel makes, UEVENT_BUFFER_SIZE */
#define MESSAGES_MAX 1000 /* for one call */

/* "onli" and "offl" as the filter loads them. */
#define WORD(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static int filter(int fd) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('o', 'n', 'l', 'i'), 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WORD('o', 'f', 'f', 'l'), 0, 1),
                BPF_STMT(BPF_RET | BPF_K, UINT32_MAX), /* all of it */
                BPF_STMT(BPF_RET | BPF_K, 0),
        };
        struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

        return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? error_origin(-errno) : 0;
}

int hotplug_open(int *ret_fd) {
        struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = GROUP_KERNEL };
        _cleanup_close_ int fd = -1;
        int on = 1, r;

        thread_assert(THREAD_MAIN);
        fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
        if (fd < 0)
                return error_origin(-errno);
        r = filter(fd); /* before anything can arrive */
        if (r < 0)
                return r;
        if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
            bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return error_origin(-errno);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Digits only, as the kernel writes a number. */
static bool read_cpu(const char *text, uint32_t *ret) {
        uint32_t cpu = 0;

        if (!*text || (text[0] == '0' && text[1] != '\0'))
                return false;
        for (; *text; text++) {
                if (*text < '0' || *text > '9')
                        return false;
                cpu = cpu * 10 + (uint32_t)(*text - '0');
                if (cpu > CPU_LIST_MAX_CPU)
                        return false;
        }
        *ret = cpu;
        return true;
}

int hotplug_parse(const char *message, size_t length, uint32_t *ret_cpu, bool *ret_online) {
        static const char online[] = "online@/devices/system/cpu/cpu", offline[] = "offline@/devices/system/cpu/cpu";
        static const char made_up[] = "SYNTH_UUID=";
        bool is_online;
        uint32_t cpu;

        if (length == 0 || message[length - 1] != '\0')
                return HOTPLUG_E_NONE;
        is_online = strncmp(message, online, strlen(online)) == 0;
        if (!is_online && strncmp(message, offline, strlen(offline)) != 0)
                return HOTPLUG_E_NONE;
        if (!read_cpu(message + (is_online ? strlen(online) : strlen(offline)), &cpu))
                return HOTPLUG_E_NONE;
        for (size_t at = 0; at < length; at += strlen(message + at) + 1)
                if (strncmp(message + at, made_up, strlen(made_up)) == 0)
                        return HOTPLUG_E_NONE;
        *ret_cpu = cpu;
        *ret_online = is_online;
        return 0;
}

static bool is_from_kernel(struct msghdr *m) {
        const struct sockaddr_nl *sender = m->msg_name;

        if (m->msg_namelen != sizeof(*sender) || sender->nl_family != AF_NETLINK || sender->nl_pid != 0)
                return false;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
                struct ucred who;

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
                    c->cmsg_len < CMSG_LEN(sizeof(who)))
                        continue;
                memcpy(&who, CMSG_DATA(c), sizeof(who));
                if (who.uid != 0)
                        return false;
        }
        return true;
}

int hotplug_next(int fd, uint32_t *ret_cpu, bool *ret_online) {
        thread_assert(THREAD_MAIN);
        for (int i = 0; i < MESSAGES_MAX; i++) {
                _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
                char message[MESSAGE_MAX];
                struct sockaddr_nl sender;
                struct iovec part = { .iov_base = message, .iov_len = sizeof(message) };
                struct msghdr m = { .msg_name = &sender, .msg_namelen = sizeof(sender), .msg_iov = &part,
                                    .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
                ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? HOTPLUG_E_NONE : errno == ENOBUFS ? HOTPLUG_E_OVERRUN : error_origin(-errno);
                if (!is_from_kernel(&m))
                        continue;
                if (m.msg_flags & MSG_TRUNC)
                        return HOTPLUG_E_OVERRUN; /* longer than the kernel makes them: whatever it said */
                if (hotplug_parse(message, (size_t)n, ret_cpu, ret_online) == 0)
                        return 0;
        }
        return HOTPLUG_E_NONE;
}
