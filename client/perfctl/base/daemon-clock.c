#include "client/perfctl/base/daemon-clock.h"

#include <string.h>

uint64_t clock_read(clockid_t id) {
        struct timespec ts;

        clock_gettime(id, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool daemon_clock_here(const char *name, DaemonClock *ret) {
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
                        return true;
                }
        return false;
}

/* `here`: CLOCK_MONOTONIC, for when the answer is taken to have been made. */
static bool find_there(const perfd_result *status, uint64_t here, DaemonClock *ret) {
        uint64_t time = perfd_result_status(status)->time;

        *ret = (DaemonClock){ .id = CLOCK_MONOTONIC, .ahead = time - here };
        return time > 0;
}

int daemon_clock_find(Perfctl *p, DaemonClock *ret) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *status = NULL;
        uint64_t asked = clock_read(CLOCK_MONOTONIC), answered;

        if (perfd_status(p->client, &status) != 0)
                return perfctl_fail_client(p, NULL);
        answered = clock_read(CLOCK_MONOTONIC);
        if (!p->host)
                return daemon_clock_here(perfd_result_status(status)->clock, ret) ? 0 :
                       perfctl_fail(p, PERFCTL_FAILED, "the daemon's clock '%s' is not known here", perfd_result_status(status)->clock);
        if (!find_there(status, asked + (answered - asked) / 2, ret))
                return perfctl_fail(p, PERFCTL_FAILED, "the perfd of %s does not say what its clock shows: it is older than this perfctl",
                                    p->host);
        return 0;
}

uint64_t daemon_clock_now(const DaemonClock *clock) {
        return clock_read(clock->id) + clock->ahead;
}

HostWall host_wall_ask(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *status = NULL;
        HostWall wall = { .is_known = false };

        wall.is_known = perfd_status(p->client, &status) == 0 && find_there(status, clock_read(CLOCK_MONOTONIC), &wall.clock);
        return wall;
}

uint64_t host_wall_now(const HostWall *wall, int64_t wall_offset) {
        return wall->is_known ? daemon_clock_now(&wall->clock) + (uint64_t)wall_offset : clock_read(CLOCK_REALTIME);
}
