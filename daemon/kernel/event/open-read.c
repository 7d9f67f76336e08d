/* What perf event fds have counted, by read(2): a reader's thread reads those of its own CPU. */
#include "daemon/kernel/event/open.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/event-name/event-name.h"

#define PATIENT_TRIES 100
#define PATIENT_NSEC 20000

/*
 * Linux counts a group together with what each child has of it, and refuses to where that is not the same (perf_read_group()):
 * while a fork() is on its way, and, of a child that was born while the group was opened, until it ends.
 */
static int read_failed(int error) {
        return error == ECHILD || error == ENOSPC ? OPEN_E_APART : error_origin(-error);
}

/*
 *     alone    | value | enabled | running | id | lost |              each only if asked for
 *     group    | n | enabled | running | value id lost | ... |        the leader first
 */
int open_read(int fd, uint64_t read_format, ReadCount *ret) {
        bool is_group = read_format & PERF_FORMAT_GROUP;
        uint64_t values[3 + 3 * EVENT_MEMBERS_MAX] = { 0 };
        ssize_t n = read(fd, values, sizeof(values));
        size_t at = 1, have;

        if (n == 0) { /* a pinned event that could not stay on its PMU: as one that never ran, "not counted" */
                *ret = (ReadCount){ .value = 0 };
                return 0;
        }
        if (n < (ssize_t)sizeof(uint64_t))
                return n < 0 ? read_failed(errno) : error_origin(-EIO);
        have = (size_t)n / sizeof(uint64_t);
        *ret = (ReadCount){ .value = is_group ? 0 : values[0] };
        if ((read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) && at < have)
                ret->enabled = values[at++];
        if ((read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) && at < have)
                ret->running = values[at++];
        if (is_group && at < have)
                ret->value = values[at++];
        if (read_format & PERF_FORMAT_ID)
                at++;
        if ((read_format & PERF_FORMAT_LOST) && at < have)
                ret->lost = values[at];
        return 0;
}

/* The fork() may be what this thread has interrupted, so that it has to sleep. */
int open_read_patiently(int fd, uint64_t read_format, ReadCount *ret) {
        int r = open_read(fd, read_format, ret);

        for (int i = 0; i < PATIENT_TRIES && r == OPEN_E_APART; i++) {
                nanosleep(&(struct timespec){ .tv_nsec = PATIENT_NSEC }, NULL);
                r = open_read(fd, read_format, ret);
        }
        return r;
}

int open_read_group(int fd, uint64_t read_format, ReadCount *ret, size_t n) {
        uint64_t values[3 + 3 * EVENT_MEMBERS_MAX] = { 0 }, enabled = 0, running = 0;
        size_t at = 1, each = 1 + !!(read_format & PERF_FORMAT_ID) + !!(read_format & PERF_FORMAT_LOST);
        ssize_t length;

        assert(read_format & PERF_FORMAT_GROUP);
        length = read(fd, values, sizeof(values));
        if (length < 0)
                return read_failed(errno);
        if (length == 0) { /* as in open_read() */
                memset(ret, 0, n * sizeof(*ret));
                return 0;
        }
        if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
                enabled = values[at++];
        if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
                running = values[at++];
        if (values[0] != n || (size_t)length != (at + n * each) * sizeof(uint64_t))
                return OPEN_E_APART;
        for (size_t i = 0; i < n; i++, at += each)
                ret[i] = (ReadCount){ .value = values[at], .enabled = enabled, .running = running,
                                      .lost = read_format & PERF_FORMAT_LOST ? values[at + each - 1] : 0 };
        return 0;
}
