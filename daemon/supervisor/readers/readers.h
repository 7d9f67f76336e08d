/* For the supervisor: CPUs, with their carriers, rings and readers, and where threads run. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/kernel/host/idle-cpus.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/dispatcher/dispatcher.h"
#include "daemon/kernel/event/attr.h"
#include "daemon/model/comm-table.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/process-tree.h"
#include "daemon/reader/reader.h"
#include "daemon/reader/stall-monitor.h"
#include "daemon/supervisor/host/host.h"
#include "daemon/supervisor/operations/operations.h"
#include "daemon/supervisor/readers/births.h"
#include "daemon/supervisor/readers/emit-pipe.h"
#include "daemon/supervisor/readers/hooks.h"
#include "daemon/supervisor/readers/stall.h"
#include "daemon/supervisor/readers/tasks.h"
#include "daemon/supervisor/settings/settings.h"

#define WATERMARK_SHARE 2 /* of a ring, that wakes its reader before the flush time */

/* Borrowed are the first ones, which are set before the start. */
typedef struct Readers {
        Settings *settings;
        Host *host;
        Operations *operations;
        LossBell *loss_bell; /* rung by who loses samples */
        ReaderHooks hooks;

        AttrBase attr;
        size_t n_cpus;  /* slots */
        uint32_t *cpus; /* by slot: every CPU that can be there */
        bool *online;   /* by slot: it has a reader and a ring */
        int *carriers;          /* by slot */
        PerfFdSet carrier_fds; /* the same, to be switched; owns none of them */
        CgroupMigrations migrations; /* on and off with the carriers */
        Reader *by_slot;
        BatchPipe *pipes;       /* by slot: of the readers, and behind them our own; for the dispatcher */
        EmitPipe emit_pipe;
        StallMonitor stalls;
        uint32_t *reader_cpus, *dispatcher_cpus; /* as configured at the start; none: all */
        size_t n_reader_cpus, n_dispatcher_cpus;
        CommTable comms;
        ReadBudget *budgets;    /* supervisor/readers/budgets.c, with the next */
        uint64_t charged;       /* the uid that pays for what readers are asked; BUDGET_OF_REQUEST: as operations_uid() says */
        ProcessTree process_tree; /* of tasks that events with children are open on */
        BirthDoubts births;
        IdleCpus *idle;         /* NULL: cannot be seen here */
        Explanation no_idle;    /* why */

        Dispatcher dispatcher;
        bool dispatcher_started;
        size_t n_subscribers, n_subscriptions, n_pools; /* that it has */
        size_t subscribers_max;                /* what it was made for */

        int acknowledge_fd;
        Stalls answering;       /* readers that do not answer */
        struct {
                nsec_t since; /* CLOCK_MONOTONIC: what the dispatcher was asked first and does not answer; 0: it does */
                struct DispatcherAsk *look; /* asked by readers_look_at_dispatcher(), not answered yet; or NULL */
                nsec_t looked;              /* when, or when it has moved last since then */
                uint64_t seen;              /* of its heartbeat, then */
        } unanswered;
        uint64_t sequence, generation; /* of the last command to readers, and the last published snapshot */
        uint64_t n_cuts;  /* the number of the last cut */
        int uid_socket;   /* reports of changed uids; -1: there are none */
        bool observes;    /* an event of the kernel is enabled, or children may be born into one that is not */
        bool has_inherited; /* of these, one that children inherit: main has to know of births */
        bool active;      /* the carriers are enabled: readers_update_carriers() */
        bool wants_tasks; /* somebody is subscribed, or about to be */
        bool tells_notes; /* readers tell the dispatcher of tasks: the last published snapshot says so */
        bool knows_tasks; /* the dispatcher has heard of those that were there before */
} Readers;

/*
 * supervisor/readers/cpus.c: for each CPU that can be there a slot, for each that is online a carrier, a ring, batches and a
 * reader. Refused: with the limit or the privilege that is in the way.
 */
int readers_start_cpus(Readers *s, Explanation *e);
int readers_start(Readers *s, Explanation *e);
int readers_explain_thread(int r, Explanation *e);
/*
 * supervisor/readers/idle.c: what it takes, with the privileges of the beginning, which end with it; why not, if *ret is NULL then.
 * -ENOMEM. Behind it, before the dispatcher starts, all CPUs that are online; and one that came.
 */
int readers_open_idle(IdleCpus **ret, Explanation *why);
void readers_start_idle(Readers *s);
void readers_find_idle(Readers *s, uint32_t slot);
/*
 * supervisor/readers/place.c: tells every reader and the dispatcher, before they start, where they run and how urgently. Refused: a
 * list of CPUs has none that is online.
 */
int readers_place_threads(Readers *s, Explanation *e);
/* Some ring is read by a thread on another CPU than its own. */
bool readers_read_remotely(const Readers *s);
void readers_free_places(Readers *s);
/* Disabled. Side records that this kernel does not know are done without. Also OPEN_E_OFFLINE. */
int readers_open_carrier(Readers *s, uint32_t slot, int *ret_fd, uint64_t *ret_read_format, Explanation *e);
/*
 * One CPU's carrier and ring, and the reader's own parts unless it has them from the last time that the CPU was there.
 * Half of it is left if it fails: readers_close_ring().
 */
int readers_open_ring(Readers *s, uint32_t slot, Explanation *e);
void readers_close_ring(Readers *s, uint32_t slot);
int readers_start_one(Readers *s, uint32_t slot, Explanation *e);
/* What is on while something is traced: the carrier, and who moves between cgroups. At most two. */
size_t readers_list_carrier(const Readers *s, uint32_t slot, PerfFd *to);
/* The same of all online CPUs, into s->carrier_fds. */
void readers_list_carriers(Readers *s);
size_t readers_count_online(const Readers *s);
void readers_stop(Readers *s);
/* Accepts what was half started. The threads have ended. */
void readers_free_cpus(Readers *s);
