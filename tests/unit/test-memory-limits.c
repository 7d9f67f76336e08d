/*
 * What the host and the limits of cgroups leave, on hosts that are played: v2, v1, bind mounts, and files that cannot be.
 */
#include "tests/unit/cgroup-rig.h"

#include <sys/resource.h>

#include "daemon/base/fd-limit.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/memory-limits.h"

#define MIB (1 << 20)

static int begin(void **state) {
        (void)snprintf(host, sizeof(host), "/tmp/perfd-memory.XXXXXX");
        assert_non_null(mkdtemp(host));
        make_folder("/proc/self");
        write_file("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\nMemAvailable:    1048576 kB\n");
        return 0;
}

static int end(void **state) {
        char command[128];

        (void)snprintf(command, sizeof(command), "rm -r '%s'", host);
        return system(command) == 0 ? 0 : -1;
}

static int64_t room(void) {
        MemoryLimits m = MEMORY_LIMITS_NULL;
        int64_t n;

        assert_int_equal(memory_limits_find(host, &m), 0);
        n = memory_limits_room(&m);
        memory_limits_deinit(&m);
        memory_limits_deinit(&m);
        return n;
}

/* Nothing is kept free, and neither the host's memory nor cgroups are asked: malloc(3) does not fail there. */
static int64_t mappable(void) {
        MemoryLimits m = MEMORY_LIMITS_NULL;
        int64_t n;

        assert_int_equal(memory_limits_find(host, &m), 0);
        n = memory_limits_mappable(&m);
        memory_limits_deinit(&m);
        return n;
}

#define V2 "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"

static void test_host(void **state) {
        assert_true(room() == (int64_t)(1024 - 128) * MIB); /* nothing is said of cgroups */
        write_file("/proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 64 kB\n");
        assert_true(room() == (64 - 128) * 1024);
        write_file("/proc/meminfo", "MemTotal: 1024 kB\nMemAvailable: 2048 kB\n"); /* cannot be */
        assert_true(room() == INT64_MAX);
        write_file("/proc/meminfo", "Mem");
        assert_true(room() == INT64_MAX);
}

/* What may be mapped, and what Linux has promised where it promises no more than it has. */
static void test_addresses(void **state) {
        write_file("/proc/self/limits", "Limit Soft Limit Hard Limit Units\n"
                                        "Max address space         67108864             unlimited            bytes\n");
        assert_true(room() == (1024 - 128) * (int64_t)MIB); /* what is mapped is not said */
        write_file("/proc/self/status", "Name:\tperfd\nVmPeak:\t   99999 kB\nVmSize:\t   20480 kB\n");
        assert_true(room() == (64 - 8 - 20) * MIB);
        assert_true(mappable() == (64 - 20) * MIB);
        write_file("/proc/self/limits", "Max address space         unlimited            unlimited            bytes\n");
        assert_true(room() == (1024 - 128) * (int64_t)MIB);

        write_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n"
                                    "CommitLimit: 65536 kB\nCommitted_AS: 61440 kB\n");
        make_folder("/proc/sys/vm");
        write_file("/proc/sys/vm/overcommit_memory", "0\n");
        assert_true(room() == (1024 - 128) * (int64_t)MIB);
        assert_true(mappable() == INT64_MAX);
        write_file("/proc/sys/vm/overcommit_memory", "2\n");
        assert_true(room() == (64 - 8 - 60) * MIB);
        assert_true(mappable() == (64 - 60) * MIB);
}

static void test_v2(void **state) {
        MemoryLimits m = MEMORY_LIMITS_NULL;
        int fd;

        write_file("/proc/self/mountinfo", V2);
        write_file("/proc/self/cgroup", "0::/system.slice/perfd.service\n");
        make_folder("/sys/fs/cgroup/system.slice/perfd.service");
        assert_true(room() == (1024 - 128) * (int64_t)MIB);

        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.max", "67108864\n"); /* 64 MiB, of which 8 are kept free */
        assert_true(room() == (1024 - 128) * (int64_t)MIB); /* what is used is not said */
        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.current", "10485760\n");
        assert_true(room() == (64 - 8 - 10) * MIB);
        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.stat",
                   "anon 1\nfile 9\ninactive_file 1048576\nactive_file 2097152\nshmem 1\n");
        assert_true(room() == (64 - 8 - 7) * MIB);
        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.high", "16777216\n");
        assert_true(room() == (16 - 2 - 7) * MIB);
        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.high", "max\n");
        assert_true(room() == (64 - 8 - 7) * MIB);
        write_file("/sys/fs/cgroup/system.slice/memory.max", "33554432\n"); /* what is above it is a limit too */
        write_file("/sys/fs/cgroup/system.slice/memory.current", "33554432\n");
        assert_true(room() == -4 * MIB);
        write_file("/sys/fs/cgroup/system.slice/memory.max", "wrong\n");
        assert_true(room() == (64 - 8 - 7) * MIB);

        assert_int_equal(memory_limits_find(host, &m), 0);
        assert_int_equal(memory_limits_watch(&m), -1);
        write_file("/sys/fs/cgroup/system.slice/perfd.service/memory.events", "low 0\n");
        fd = memory_limits_watch(&m);
        assert_true(fd >= 0);
        close_fd(fd);
        memory_limits_deinit(&m);
}

/* A container sees its own cgroup as the mount's root, and a path that means nothing here. */
static void test_container(void **state) {
        write_file("/proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        make_folder("/sys/fs/cgroup/in");
        write_file("/sys/fs/cgroup/memory.max", "67108864\n");
        write_file("/sys/fs/cgroup/memory.current", "0\n");
        write_file("/sys/fs/cgroup/in/memory.max", "33554432\n");
        write_file("/sys/fs/cgroup/in/memory.current", "0\n");
        write_file("/proc/self/cgroup", "0::/docker/abc\n");
        assert_true(room() == 56 * MIB);
        write_file("/proc/self/cgroup", "0::/docker/abc/in\n");
        assert_true(room() == 28 * MIB);
        write_file("/proc/self/cgroup", "0::/docker/abcd\n");
        assert_true(room() == 56 * MIB);
        write_file("/proc/self/cgroup", "0::/\n");
        assert_true(room() == 56 * MIB);
        write_file("/proc/self/cgroup", "\n:\n::\nnothing");
        assert_true(room() == 56 * MIB); /* "::" is v2's line, with nothing in it */
}

static void test_v1(void **state) {
        write_file("/proc/self/mountinfo", "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                           "32 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" V2);
        write_file("/proc/self/cgroup", "9:name=systemd:/x\n4:blkio,memory:/a/b\n0::/c\n");
        make_folder("/sys/fs/cgroup/memory/a/b");
        write_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
        write_file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1\n");
        assert_true(room() == (1024 - 128) * (int64_t)MIB);
        write_file("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "67108864\n");
        write_file("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "10485760\n");
        write_file("/sys/fs/cgroup/memory/a/b/memory.stat", "cache 7\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
        assert_true(room() == (64 - 8 - 8) * MIB);
        write_file("/proc/self/cgroup", "0::/c\n");
        assert_true(room() == (1024 - 128) * (int64_t)MIB);
}

/* Limits are seen also when no fd is left: they are read with the reserve. */
static void test_no_fds(void **state) {
        /* for good, in this process: root could raise it, nobody has to */
        const struct rlimit few = { .rlim_cur = 100, .rlim_max = 100 };
        MemoryLimits m = MEMORY_LIMITS_NULL;
        int taken[100], n = 0;

        write_file("/proc/self/mountinfo", V2);
        write_file("/proc/self/cgroup", "0::/perfd\n");
        make_folder("/sys/fs/cgroup/perfd");
        write_file("/sys/fs/cgroup/perfd/memory.max", "67108864\n");
        write_file("/sys/fs/cgroup/perfd/memory.current", "10485760\n");
        assert_int_equal(memory_limits_find(host, &m), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(fd_limit_init(), 0);
        while ((taken[n] = dup(STDERR_FILENO)) >= 0)
                n++;
        assert_int_equal(errno, EMFILE);
        assert_true(memory_limits_room(&m) == (64 - 8 - 10) * MIB);
        assert_int_equal(dup(STDERR_FILENO), -1); /* the reserve is closed again */
        while (n > 0)
                close_fd(taken[--n]);
        memory_limits_deinit(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_host, begin, end),
                cmocka_unit_test_setup_teardown(test_addresses, begin, end),
                cmocka_unit_test_setup_teardown(test_v2, begin, end),
                cmocka_unit_test_setup_teardown(test_container, begin, end),
                cmocka_unit_test_setup_teardown(test_v1, begin, end),
                cmocka_unit_test_setup_teardown(test_no_fds, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
