/*
 * For the supervisor: readers that do not answer, because somebody has stopped their thread, as a debugger does. Main thread
 * only.
 *
 * Such a reader is stalled from when main has waited for it in vain until it answers again. It is sent nothing meanwhile. What
 * is to be disabled on its CPU main disables itself; what is to be enabled there waits. What the reader may still look at, by the
 * snapshot that it has or by what it was sent last, is neither freed nor closed. When it answers it is brought up to date, as a
 * CPU that came. What its ring has no room for is counted by the kernel, as ever.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/dispatcher/dispatcher.h"
#include "daemon/reader/reader.h"

typedef struct Readers Readers;

/* What is kept for stalled readers; the last one that answers releases it. */
typedef struct Deferred {
        struct Deferred *next;
        void (*release)(Readers *s, void *object);
        void *object;
} Deferred;

/* Of one reader, what main knows. */
typedef struct Answering {
        uint64_t sequence;    /* of the last command that it was sent */
        ReaderCommandKind kind;    /* of that */
        nsec_t sent;          /* CLOCK_MONOTONIC: then */
        uint64_t n_slices;    /* of its commands, at the last look */
        nsec_t moved;         /* CLOCK_MONOTONIC: when there were more than at the look before */
        nsec_t stalled_since; /* the same; 0: it answers */
        nsec_t catches_up_since; /* what that was, while it is told what it missed, in which others are served; 0: it is not */
        unsigned n_missed;    /* changes that it was not told of */
        Snapshot *snapshot;   /* the last one that it was sent */
        bool has_left;        /* its CPU went offline meanwhile */
        bool owes_retire;     /* it has two rings, and is to be told that the old one is done */
} Answering;

typedef struct Stalls {
        Answering *readers; /* by slot */
        sd_event_source *source; /* hears of answers while there are stalled ones */
        Deferred *deferred, *last;
        size_t n, n_fds; /* stalled readers; fds that are kept for them */
        bool is_abandoned; /* perfd ends, and frees nothing that they may look at */
} Stalls;

/* Before the readers start. -ENOMEM, what sd_event_add_io() says. */
int readers_start_stalls(Readers *s);
void readers_free_stalls(Readers *s);

static inline bool reader_is_stalled(const Answering *a) {
        return a->stalled_since > 0;
}

/* Main does not wait for it any longer. It has been sent something that it will acknowledge when it goes on. */
void readers_set_stalled(Readers *s, uint32_t slot);
/* Of one that was not sent anything yet, and was asked otherwise, or looked at, and has been silent since then. */
void readers_doubt(Readers *s, uint32_t slot, nsec_t since, const char *asked);
/* release(s, object) when no reader is stalled; now, if none is. */
void readers_defer(Readers *s, void (*release)(Readers *s, void *object), void *object);
/* What is kept for nobody any more goes. */
void readers_release_deferred(Readers *s);
/* To the dispatcher, about the batch pipe of a reader; it is not waited for. -ENOMEM */
int readers_tell_pipe(Readers *s, DispatcherCommandKind kind, uint32_t slot);
/* At the end, when it is not waited for any longer: fds and probes of what was kept go, its memory stays. */
void readers_abandon_deferred(Readers *s);
/* Which CPUs are left out, and since when. "" if none is. */
void readers_say_stalled(const Readers *s, char *text, size_t size);
/* In which state a thread is, in words for the log. */
const char *readers_thread_state(pid_t tid);
/* What needs every reader is refused while one does not answer. */
int readers_refuse_stalled(const Readers *s, const char *what, Explanation *e);
