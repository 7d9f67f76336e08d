/*
 * Limits against what perfd needs on this machine. Rings are mapped for all CPUs at the same time, because the memory
 * that may be locked is shared by them; a daemon that has its rings already is the proof itself.
 */
#include "daemon/kernel/doctor/trial.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/event/attr.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define EVENTS_WANTED 64 /* on each CPU: with less room there is little that can be traced */

static void examine_fds(Doctor *d) {
        struct rlimit limit = { 0 };
        size_t own = d->wants->n_own_fds + d->n_cpus * d->wants->n_fds_each_cpu,
               wanted = own + d->n_cpus * EVENTS_WANTED;
        char remedy[160];

        (void)getrlimit(RLIMIT_NOFILE, &limit);
        d->has_fds = limit.rlim_max > own;
        (void)snprintf(remedy, sizeof(remedy),
                       "LimitNOFILE=%zu in perfd's unit, or ulimit -Hn %zu: enough for 1000 events on %zu CPUs",
                       own + 1000 * d->n_cpus, own + 1000 * d->n_cpus, d->n_cpus);
        if (limit.rlim_max >= wanted)
                doctor_yes(d, "RLIMIT_NOFILE",
                           "%llu fds, of which perfd itself needs %zu: enough for %llu events on %zu CPUs",
                           (unsigned long long)limit.rlim_max, own,
                           (unsigned long long)(limit.rlim_max - own) / d->n_cpus, d->n_cpus);
        else
                doctor_no(d, "RLIMIT_NOFILE", remedy, "%llu fds, of which perfd itself needs %zu on %zu CPUs",
                          (unsigned long long)limit.rlim_max, own, d->n_cpus);
}

typedef struct TriedRing {
        int fd;
        void *mapping;
} TriedRing;

/* -errno of the first that fails, as many as were mapped in ret_n. */
static int map_rings(Doctor *d, size_t size, TriedRing *rings, size_t *ret_n) {
        AttrBase base = { .clock = d->wants->clock };
        struct perf_event_attr attr = attr_of_plain_carrier(&base);

        for (*ret_n = 0; *ret_n < d->n_cpus; ++*ret_n) {
                TriedRing *ring = &rings[*ret_n];

                ring->fd = doctor_open(&attr, -1, (int)d->cpus[*ret_n], 0);
                if (ring->fd < 0)
                        return ring->fd;
                ring->mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
                if (ring->mapping == MAP_FAILED) {
                        int error = error_origin(-errno);

                        close(ring->fd);
                        return error;
                }
        }
        return 0;
}

/* What fits beside the control page of each ring: the greatest power of two; 0: none. */
static size_t ring_that_fits(const Doctor *d, long mlock_kb, rlim_t locked, size_t page) {
        uint64_t each = (mlock_kb > 0 ? (uint64_t)mlock_kb * 1024 : 0) + locked / d->n_cpus;
        size_t size = 0;

        for (size_t next = page; next + page <= each && next < d->wants->ring_size; next *= 2)
                size = next;
        return size;
}

static void refuse_rings(Doctor *d, int r, size_t n, size_t page) {
        long mlock_kb = doctor_read_number(d, "/proc/sys/kernel/perf_event_mlock_kb");
        struct rlimit limit = { 0 };
        char remedy[200];
        size_t fits;

        (void)getrlimit(RLIMIT_MEMLOCK, &limit);
        fits = ring_that_fits(d, mlock_kb, limit.rlim_cur, page);
        if ((r == -EPERM || r == -EAGAIN) && d->can_host) {
                d->missed |= doctor_has(d, CAP_IPC_LOCK) ? 0 : 1ULL << CAP_IPC_LOCK;
                (void)snprintf(remedy, sizeof(remedy), "LimitMEMLOCK=infinity in perfd's unit (ulimit -l unlimited)");
                if (fits > 0)
                        (void)snprintf(remedy + strlen(remedy), sizeof(remedy) - strlen(remedy),
                                       ", or rings.size: %zuKiB", fits / 1024);
        } else
                (void)snprintf(remedy, sizeof(remedy), "%s",
                               r == -ENOMEM ? "make rings.size smaller" : "see host-wide events");
        doctor_no(d, "locked memory", remedy,
                  "rings of %zu KiB on %zu of %zu CPUs, then: %s; kernel.perf_event_mlock_kb is %ld a "
                  "CPU, RLIMIT_MEMLOCK %llu KiB",
                  d->wants->ring_size / 1024, n, d->n_cpus, strerror(-r), mlock_kb,
                  (unsigned long long)limit.rlim_cur / 1024);
}

static void examine_rings(Doctor *d) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), size = page + d->wants->ring_size, n = 0;
        _cleanup_free_ TriedRing *rings = calloc(d->n_cpus, sizeof(*rings));
        int r;

        if (!rings) {
                d->error = error_origin(-ENOMEM);
                return;
        }
        r = d->wants->has_rings ? 0 : map_rings(d, size, rings, &n);
        for (size_t i = 0; i < n; i++) {
                (void)munmap(rings[i].mapping, size);
                close(rings[i].fd);
        }
        d->can_map = r == 0;
        if (r == 0)
                doctor_yes(d, "locked memory", "rings of %zu KiB %s on %zu CPUs", d->wants->ring_size / 1024,
                           d->wants->has_rings ? "are mapped" : "were mapped", d->n_cpus);
        else
                refuse_rings(d, r, n, page);
}

/* Both are there to keep sampling from taking the machine over, and the kernel lowers the first one by itself. */
static void examine_rates(Doctor *d) {
        long rate = doctor_read_number(d, "/proc/sys/kernel/perf_event_max_sample_rate");
        long percent = doctor_read_number(d, "/proc/sys/kernel/perf_cpu_time_max_percent");

        if (rate >= 99)
                doctor_yes(d, "perf_event_max_sample_rate", "up to %ld samples a second for each event and CPU", rate);
        else
                doctor_no(d, "perf_event_max_sample_rate", "sysctl kernel.perf_event_max_sample_rate=100000",
                          "%ld: a frequency above it is refused", rate);
        if (percent > 0 && percent < 100)
                doctor_yes(d, "perf_cpu_time_max_percent",
                           "%ld: the kernel lowers the sample rate when sampling takes more of a CPU's time", percent);
        else if (percent == 0 || percent == 100)
                doctor_yes(d, "perf_cpu_time_max_percent", "%ld: the kernel does not limit the cost of sampling",
                           percent);
        else
                doctor_no(d, "perf_cpu_time_max_percent", "mount procfs on /proc", "it cannot be read");
}

void doctor_examine_limits(Doctor *d) {
        d->topic = "limits";
        examine_fds(d);
        examine_rings(d);
        examine_rates(d);
}
