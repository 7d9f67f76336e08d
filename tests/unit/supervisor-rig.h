/*
 * The supervisor's parts as the daemon composes them, on a played kernel with two CPUs, without privileges and without threads
 * (tests/unit/played-threads.h).
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/supervisor/supervisor.h"
#include "tests/unit/played-kernel.h"
#include "tests/unit/played-threads.h"

#define RIG_CPUS PLAYED_CPUS
#define RIG_CPU (PLAYED_CPU + 1) /* the one that goes and comes */
#define RIG_TRACEPOINT "irq:softirq_entry" /* of the formats in tests/unit/formats; played, as all of tracefs */

typedef struct Rig {
        Supervisor supervisor;
        char folder[32];   /* tracefs, and what else tests put there */
        Explanation e;   /* of the last change */
} Rig;

void rig_start(Rig *rig);
/* Everything is closed: asserted. */
void rig_stop(Rig *rig);

/* In tracefs from now on: a name of tests/unit/formats, as "sched:sched_process_exec". */
void rig_make_tracepoint(Rig *rig, const char *name);

/* The file of the configuration, for the next reload. */
void rig_write_config(Rig *rig, const char *yaml);

/* As "page-faults", "faults=page-faults" with a name, and behind a "!" disabled. What changes_add() says. */
int rig_add(Rig *rig, const char *const *events, size_t n);
int rig_add_persistent(Rig *rig, const char *const *events, size_t n);
/* Specs move. */
int rig_add_specs(Rig *rig, EventSpec *specs, size_t n, const AddOptions *adding);
int rig_remove(Rig *rig, const char *name);
int rig_enable_all(Rig *rig);
int rig_disable_all(Rig *rig);
/* RIG_CPU goes offline, or is back, and the supervisor is told. */
int rig_cpu_goes(Rig *rig);
int rig_cpu_comes(Rig *rig);
Registration *rig_find(Rig *rig, const char *name);
/* It is open on both CPUs, in their rings, and their readers know it. */
void rig_check_opened(Rig *rig, const char *name, bool on);
void rig_check_carriers(Rig *rig, bool on);
/* Of all CPUs, as of a new cut: what the ledger takes for occurrences. */
uint64_t rig_occurred(Rig *rig, const char *name);
/*
 * All that a refused change must leave as it was, one line each: events, what they have counted, the kernel's fds, and what
 * readers know of them. malloc'ed
 */
char *rig_picture(Rig *rig);

typedef int (*RigChange)(Rig *rig);
/*
 * change(), behind prepare(), once for each call that can fail, which does: refused, everything is as before; negative, the
 * process would end, and nothing is leaked. In the end none fails. How many did.
 */
unsigned rig_fail_each(PlayedCall call, int error, RigChange prepare, RigChange change);
/* The same for what is not refused as a whole: what is to be seen then, of each call that failed. before: rig_picture(). */
typedef void (*RigOutcome)(Rig *rig, PlayedCall call, int r, const char *before);
unsigned rig_fail_each_as(PlayedCall call, int error, RigChange prepare, RigChange change, RigOutcome outcome);
