/*
 * The supervisor's parts as the daemon composes them, on a played kernel with two CPUs, without privileges and without threads:
 * readers are real, and do what they are told as soon as they are told it. Nobody is subscribed; a batch that a reader gives away
 * comes back at once.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/supervisor/supervisor.h"
#include "tests/unit/played-kernel.h"

#define RIG_CPUS 2
#define RIG_TRACEPOINT "irq:softirq_entry" /* of the formats in tests/unit/formats; played, as all of tracefs */

typedef struct Rig {
        Supervisor supervisor;
        char folder[32]; /* tracefs */
        Explanation e;   /* of the last change */
} Rig;

void rig_start(Rig *rig);
/* Everything is closed: asserted. */
void rig_stop(Rig *rig);

/* Disabled if the name begins with "!"; called as it is. What changes_add() says. */
int rig_add(Rig *rig, const char *const *events, size_t n);
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
