/*
 * A perfd that was taken over shall not read the memory of the kernel. It needs bpf(2) once to load two programs, and from then
 * on to run them; where it keeps CAP_SYS_ADMIN the rest of that system call would let it do anything. Filters are inherited by
 * threads, as capabilities are.
 */
#include "daemon/kernel/system-calls.h"

#include <errno.h>
#include <linux/bpf.h>
#include <seccomp.h>

#include "daemon/base/thread.h"

int system_calls_end_bpf(void) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
        int r;

        thread_assert(THREAD_MAIN);
        if (!filter)
                return -ENOMEM;
        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(bpf), 1, SCMP_A0(SCMP_CMP_NE, BPF_PROG_TEST_RUN));
        if (r == 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}
