/*
 * perf_mmap(): pages of rings count against kernel.perf_event_mlock_kb for each online CPU, what is above that against
 * RLIMIT_MEMLOCK; with CAP_IPC_LOCK, or kernel.perf_event_paranoid below 0, against nothing.
 */
#include "daemon/kernel/event/ring-limits.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

static bool read_number(const char *path, long *ret) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");

        return f && fscanf(f, "%ld", ret) == 1;
}

static bool may_lock_memory(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { 0 } };
        long paranoid;

        if (read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid) && paranoid < 0)
                return true;
        return syscall(SYS_capget, &header, data) == 0 && (data[0].effective & (1U << CAP_IPC_LOCK));
}

int ring_limits_check(size_t n_rings, size_t size, Explanation *e) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), need = n_rings * (size + page), have;
        long mlock_kb, n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
        struct rlimit l;

        if (getrlimit(RLIMIT_MEMLOCK, &l) < 0)
                return error_origin(-errno);
        if (may_lock_memory() || l.rlim_cur == RLIM_INFINITY ||
            !read_number("/proc/sys/kernel/perf_event_mlock_kb", &mlock_kb))
                return 0;
        have = (uint64_t)mlock_kb * 1024 * (uint64_t)(n_cpus > 0 ? n_cpus : 1) + l.rlim_cur;
        if (need <= have)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "locked-memory",
                      "rings of %zu KiB on %zu CPUs need %llu KiB of locked memory, and %llu KiB are allowed: "
                      "kernel.perf_event_mlock_kb (%ld for each CPU) and RLIMIT_MEMLOCK (%llu KiB); raise LimitMEMLOCK=, give "
                      "CAP_IPC_LOCK, or make rings.size smaller", size / 1024, n_rings,
                      (unsigned long long)need / 1024, (unsigned long long)have / 1024, mlock_kb,
                      (unsigned long long)l.rlim_cur / 1024);
}
