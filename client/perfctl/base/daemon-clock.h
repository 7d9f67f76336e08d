/* The clock of the daemon's streams, read by a client: of its own machine as it is, of another one by what its status said. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "client/perfctl/base/perfctl.h"

/* ns of a clock of this machine. */
uint64_t clock_read(clockid_t id);

typedef struct DaemonClock {
        clockid_t id;   /* of this machine */
        uint64_t ahead; /* ns, modulo 2^64: what it is behind the daemon's; 0 where they are one */
} DaemonClock;

/* By its name, of a daemon of this machine (perfd_start.clock). Whether it is known here. */
bool daemon_clock_here(const char *name, DaemonClock *ret);

/*
 * On a client that is connected, and no stream. Of another host it is wrong by half of the time that the answer took at most.
 * 0, or an exit status after a message.
 */
int daemon_clock_find(Perfctl *p, DaemonClock *ret);
/*
 * Wall time of the host of a client, ns since 1970, for when a stream begins on which nothing has come yet: its readings may be old.
 * Asked on a client that is connected, and no stream; then of perfd_start.wall_offset. It is behind by the time that the answer took on its
 * way, and never ahead. Without an answer it is that of this machine.
 */
typedef struct HostWall {
        bool is_known;
        DaemonClock clock;
} HostWall;
HostWall host_wall_ask(Perfctl *p);
uint64_t host_wall_now(const HostWall *wall, int64_t wall_offset);
/* ns. */
uint64_t daemon_clock_now(const DaemonClock *clock);
