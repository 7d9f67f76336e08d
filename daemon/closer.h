/*
 * The closer thread: closes perf event fds that the supervisor is done with. The last close(2) of a tracepoint waits
 * for RCU grace periods under a lock of the kernel's own, event_mutex (perf_trace_destroy()): tens of milliseconds for
 * each, and seconds where CPUs are busy and tasks of little weight are kept from them. The supervisor would answer nobody
 * meanwhile. What the closer gets is disabled and forgotten by every reader.
 *
 * Whoever opens a tracepoint, reads its format or sets its filter waits for that lock too. So closes begin while the
 * supervisor sleeps: what it does then waits for one close at most, and not for one each time that it needs the lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/clock.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/probe/probe.h"

typedef struct Closer {
        Thread thread;
        Mailbox mailbox, urgent;
        pthread_mutex_t lock; /* of these two */
        bool is_held, waits;
        pthread_cond_t go;
        nsec_t held_most; /* what has waited so long is closed: who is always awake has to wait in between */
        /* relaxed: a count that nothing is read behind; who sees an older one waits for a moment longer, or refuses once more */
        _Atomic(size_t) n_pending; /* fds that are not closed yet: they still count against RLIMIT_NOFILE */
        _Atomic(size_t) n_urgent;  /* of these, those of closer_close_soon() */
} Closer;

#define CLOSER_NULL ((Closer){ .thread = THREAD_NULL, .mailbox = MAILBOX_NULL, .urgent = MAILBOX_NULL, \
                               .lock = PTHREAD_MUTEX_INITIALIZER, \
                               .held_most = NSEC_PER_SEC })

/* Main. -ENOMEM, what eventfd(2) or thread_start() says. */
int closer_start(Closer *c);
/*
 * Main. The fds move; those that cannot be handed over are closed here and now. charged: their number is in it until they are
 * closed, and it lives until then; NULL: nobody's.
 */
void closer_close(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged);
/* The same before all that waits of the others: for fds that were open for a moment, and of which somebody waits for room. */
void closer_close_soon(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged);
/* Main. Removes the definition of a probe, behind all fds that were given before. Moves; NULL is nothing. */
void closer_remove_probe(Closer *c, Probe *probe);
/* Main, awake: no close begins. It waits for nobody. */
void closer_hold(Closer *c);
/* Main, before it sleeps. */
void closer_go(Closer *c);
/*
 * Main: closes what is pending and ends. Accepts one that was never started. goes_on: called when it begins, and once a second,
 * with the number of fds that are not closed yet; or NULL.
 */
void closer_stop(Closer *c, void (*goes_on)(void *userdata, size_t n_left), void *userdata);
