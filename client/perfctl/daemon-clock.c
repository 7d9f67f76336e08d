#include "client/perfctl/daemon-clock.h"

#include <string.h>

uint64_t clock_read(clockid_t id) {
        struct timespec ts;

        clock_gettime(id, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int find_here(const Perfctl *p, const char *name, DaemonClock *ret) {
        static const struct {
                const char *name;
                clockid_t id;
        } clocks[] = {
                { "monotonic", CLOCK_MONOTONIC },
                { "monotonic-raw", CLOCK_MONOTONIC_RAW },
                { "boottime", CLOCK_BOOTTIME },
                { "realtime", CLOCK_REALTIME },
        };

        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
                if (strcmp(clocks[i].name, name) == 0) {
                        *ret = (DaemonClock){ .id = clocks[i].id };
                        return 0;
                }
        return perfctl_fail(p, PERFCTL_FAILED, "the daemon's clock '%s' is not known here", name);
}

int daemon_clock_find(Perfctl *p, DaemonClock *ret) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *status = NULL;
        uint64_t asked = clock_read(CLOCK_MONOTONIC), answered, time;

        if (perfd_status(p->client, &status) != 0)
                return perfctl_fail_client(p, NULL);
        if (!p->host)
                return find_here(p, perfd_result_status(status)->clock, ret);
        answered = clock_read(CLOCK_MONOTONIC);
        time = perfd_result_status(status)->time;
        if (time == 0)
                return perfctl_fail(p, PERFCTL_FAILED, "the perfd of %s does not say what its clock shows: it is older than this perfctl",
                                    p->host);
        *ret = (DaemonClock){ .id = CLOCK_MONOTONIC, .ahead = time - (asked + (answered - asked) / 2) };
        return 0;
}

uint64_t daemon_clock_now(const DaemonClock *clock) {
        return clock_read(clock->id) + clock->ahead;
}
