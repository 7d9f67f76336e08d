/*
 * The supervisor: owns the configuration, what is traced, every perf fd, and the other threads. Main thread only, all
 * of it; what it shares with other threads are snapshots, commands and counters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/closer.h"
#include "daemon/control/control.h"
#include "daemon/supervisor/loop.h"
#include "daemon/supervisor/requests/requests.h"

typedef struct Supervisor {
        Settings settings;
        Host host;
        Closer closer;
        Control control;
        Loop loop;
        Operations operations;

        /* The parts, the lowest first: each has pointers to those that it calls, which come before it. */
        Readers readers;
        Events events;
        Resolver resolver;
        Subscriptions subscriptions;
        Ledger ledger;
        Streams streams;
        Changes changes;
        Configuration configuration;
        Requests requests;
} Supervisor;

/* supervisor/compose.c: each part gets those that it knows. */
void supervisor_compose(Supervisor *s);
/* supervisor/supervisor.c: start and stop, one list and its mirror. */
int supervisor_start(Supervisor *s, Explanation *e);
/* False: a reader that does not answer was left as it is, with all that it may look at. The process has to end by _exit(2). */
bool supervisor_stop(Supervisor *s);

/* supervisor/loop.c: the loop that main runs, its signals, the watchdog. Negative. */
int supervisor_start_loop(Supervisor *s);
/* Runs until it is told to stop; the exit code. */
int supervisor_run(Supervisor *s);
int supervisor_start_watchdog(Supervisor *s); /* for while main waits for the kernel */
