/*
 * The facts, with where the kernel makes them:
 *
 *     common_pid of raw bytes    the thread's number in the host's namespace (tracing_generic_entry_update()): exact
 *     cpumode USER or a guest    idle threads have no user mode and run no guest (perf_misc_flags())
 *     PERF_CONTEXT_USER          only of what is no thread of the kernel (get_perf_callchain()), and idle threads are
 *     a switch without PREEMPT   who goes to sleep; idle threads are always runnable (perf_event_switch(), Linux 4.17)
 *     fork, exit, comm, mmap ... idle threads do none of these
 *
 * Everything else, such as an interrupt in the kernel, can be the one or the other.
 */
#include "daemon/model/zero-tid.h"

#include <linux/perf_event.h>

static bool has_user_callchain(const Record *r) {
        for (uint64_t i = 0; i < r->n_callchain; i++)
                if (record_word(r->callchain, i) == (uint64_t)PERF_CONTEXT_USER)
                        return true;
        return false;
}

ZeroTid zero_tid_of_sample(const Plan *plan, const Record *r) {
        const uint16_t mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK;
        uint32_t pid;

        if (plan && plan->common_pid > 0 && r->raw_size >= plan->common_pid + sizeof(pid)) {
                memcpy(&pid, r->raw + plan->common_pid, sizeof(pid));
                return pid == 0 ? ZERO_TID_IDLE : ZERO_TID_OUTSIDE;
        }
        if (mode == PERF_RECORD_MISC_USER || mode == PERF_RECORD_MISC_GUEST_USER || mode == PERF_RECORD_MISC_GUEST_KERNEL ||
            has_user_callchain(r))
                return ZERO_TID_OUTSIDE;
        return ZERO_TID_UNKNOWN;
}

static bool is_sleep(const Record *r) {
        return (r->misc & PERF_RECORD_MISC_SWITCH_OUT) && !(r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
}

ZeroTid zero_tid_of_side(const Record *r) {
        switch (r->type) {
        case PERF_RECORD_READ:
                return ZERO_TID_NONE;
        case PERF_RECORD_COMM:
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
        case PERF_RECORD_NAMESPACES:
        case PERF_RECORD_CGROUP:
                return ZERO_TID_OUTSIDE;
        case PERF_RECORD_SWITCH:
        case PERF_RECORD_SWITCH_CPU_WIDE:
                return is_sleep(r) ? ZERO_TID_OUTSIDE : ZERO_TID_UNKNOWN;
        default:
                return ZERO_TID_UNKNOWN;
        }
}
