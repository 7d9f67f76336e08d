/*
 * A perfd that was taken over shall not read the memory of the kernel. It needs bpf(2) once to load two programs, and from then
 * on to run them; where it keeps CAP_SYS_ADMIN the rest of that system call would let it do anything. Filters are inherited by
 * threads, as capabilities are.
 */
#include "daemon/kernel/privileges/system-calls.h"

#include <errno.h>
#include <linux/bpf.h>
#include <seccomp.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"
#include "daemon/base/thread.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_LEAK_CHECK true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_LEAK_CHECK true
#endif
#endif
#ifndef HAS_LEAK_CHECK
#define HAS_LEAK_CHECK false
#endif

static unsigned n_filters;

static int load(scmp_filter_ctx filter) {
        int r = seccomp_load(filter); /* and no_new_privs, which it asks for */

        n_filters += r == 0;
        return r;
}

unsigned system_calls_count_filters(void) {
        thread_assert(THREAD_MAIN);
        return n_filters;
}

int system_calls_end_bpf(void) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        thread_assert(THREAD_MAIN);
        if (!filter)
                return error_origin(-ENOMEM);
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(bpf), 1, SCMP_A0(SCMP_CMP_NE, BPF_PROG_TEST_RUN));
        if (r == 0)
                r = load(filter);
        seccomp_release(filter);
        return r;
}

/*
 * Which of the things that take over a host perfd never does: become another program or user, look into other processes, change
 * what is mounted, or the kernel itself. Names that this machine's kernel does not have are left out by libseccomp.
 */
static const char *const denied[] = {
        "execve", "execveat",
        "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
        "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups",
        "unshare", "setns", "chroot", "pivot_root",
        "mount", "umount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr",
        "swapon", "swapoff", "quotactl", "quotactl_fd",
        "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
        "settimeofday", "clock_settime", "clock_adjtime", "stime", /* adjtimex(2) reads: without CAP_SYS_TIME it cannot set */
        "sethostname", "setdomainname", "acct", "syslog", "vhangup", "iopl", "ioperm", "modify_ldt", "personality",
        "add_key", "request_key", "keyctl", "mknod", "mknodat", "open_by_handle_at",
        "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "lookup_dcookie", "nfsservctl",
};

static int deny(scmp_filter_ctx filter, const char *name) {
        int call = seccomp_syscall_resolve_name(name), r;

        if (HAS_LEAK_CHECK && call == SCMP_SYS(ptrace)) /* its last look at the threads, when perfd ends */
                return 0;
        if (call == __NR_SCMP_ERROR)
                return 0; /* libseccomp is older than the call */
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0);
        return r == -EDOM ? 0 : r; /* another machine has it */
}

/* Of sockets those for clients and the service manager, and for what the kernel says of CPUs. */
static int deny_networks(scmp_filter_ctx filter) {
        int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_LT, AF_UNIX));

        for (unsigned family = AF_UNIX + 1; family < AF_NETLINK && r >= 0; family++)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
        if (r >= 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
        return r;
}

int system_calls_reduce(void) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        thread_assert(THREAD_MAIN);
        if (!filter)
                return error_origin(-ENOMEM);
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1); /* in the kernel's log, where it can */
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1); /* no code of others runs here that would have to be slowed */
        r = deny_networks(filter);
        for (size_t i = 0; i < ARRAY_SIZE(denied) && r >= 0; i++)
                r = deny(filter, denied[i]);
        if (r >= 0)
                r = load(filter);
        seccomp_release(filter);
        return r < 0 ? r : 0;
}
