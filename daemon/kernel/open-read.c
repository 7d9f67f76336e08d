/* What perf event fds have counted, by read(2): a reader's thread reads those of its own CPU. */
#include "daemon/kernel/open.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "config/event-name.h"

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
                return n < 0 ? error_origin(-errno) : -EIO;
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

int open_read_group(int fd, uint64_t read_format, ReadCount *ret, size_t n) {
        uint64_t values[3 + 3 * EVENT_MEMBERS_MAX] = { 0 }, enabled = 0, running = 0;
        size_t at = 1, each = 1 + !!(read_format & PERF_FORMAT_ID) + !!(read_format & PERF_FORMAT_LOST);
        ssize_t length;

        assert(read_format & PERF_FORMAT_GROUP);
        length = read(fd, values, sizeof(values));
        if (length < 0) /* ECHILD: a thread was born while the group was opened, and has only some of it */
                return errno == ECHILD || errno == ENOSPC ? OPEN_E_APART : error_origin(-errno);
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
