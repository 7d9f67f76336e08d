/*
 * The closer thread: closes perf event fds that the supervisor is done with. The last close(2) of a tracepoint waits
 * for an RCU grace period under a lock of the kernel's own (perf_trace_destroy()), tens of milliseconds for each, in
 * which the supervisor would answer nobody. What it gets is disabled and forgotten by every reader.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/probe.h"

typedef struct Closer {
        Thread thread;
        Mailbox mailbox;
        _Atomic(size_t) n_pending; /* fds that are not closed yet: they still count against RLIMIT_NOFILE */
} Closer;

#define CLOSER_NULL ((Closer){ .thread = THREAD_NULL, .mailbox = MAILBOX_NULL })

/* Main. -ENOMEM, what eventfd(2) or thread_start() says. */
int closer_start(Closer *c);
/* Main. The fds move; those that can not be handed over are closed here and now. */
void closer_close(Closer *c, const int *fds, size_t n);
/* Main. Removes the definition of a probe, behind all fds that were given before. Moves; NULL is nothing. */
void closer_remove_probe(Closer *c, Probe *probe);
/* Main: closes what is pending and ends. Accepts one that was never started. */
void closer_stop(Closer *c);
