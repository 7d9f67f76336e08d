/*
 * How much memory this process may still take: of the host's, and of what the limits of its cgroup and those above it leave
 * (memory.max and memory.high, v1: memory.limit_in_bytes), RLIMIT_AS, and vm.overcommit_memory where that is 2. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct MemoryLimits {
        char *root;     /* in front of /proc and of what is mounted: "" but in tests */
        char **folders; /* its cgroup and those above it that may have limits, malloc */
        size_t n;
        bool is_v1;
} MemoryLimits;

#define MEMORY_LIMITS_NULL ((MemoryLimits){ .root = NULL })

/* Where limits may be. What cannot be seen here is no limit. -ENOMEM */
int memory_limits_find(const char *root, MemoryLimits *ret);
void memory_limits_deinit(MemoryLimits *m);
/*
 * Bytes that it may take until something is kept free of each limit for all else: an eighth, 128 MiB at most. Page cache, which
 * the kernel gives up by itself, is free. Negative: it is too late. Read again each time: limits change.
 */
int64_t memory_limits_room(const MemoryLimits *m);
/*
 * Bytes that can be allocated before malloc(3) fails, by RLIMIT_AS and where vm.overcommit_memory is 2, with nothing kept free.
 * INT64_MAX: it never does.
 */
int64_t memory_limits_mappable(const MemoryLimits *m);
/*
 * An fd for EPOLLPRI: a limit of its own cgroup was reached (memory.events of v2, which has to be read to be asked again). -1:
 * there is none.
 */
int memory_limits_watch(const MemoryLimits *m);
