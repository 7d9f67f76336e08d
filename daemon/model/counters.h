/*
 * For the ledger: what happened to one event on one CPU. Every number has a single writer, named at its group, and
 * may be read by any thread at any time; the cut is a consistent set of them, valid after the reader acknowledged it.
 *
 * Counters are relaxed: a reader sees a number that was right a moment ago, and may see two of them in any order. What has to be
 * of one moment is in the cut, which has no atomics: it is published by `acknowledged` of the reader (release, acquire).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/loss.h"

typedef _Atomic(uint64_t) Counter;

/* By the counter's one writer: a plain add, no locked instruction. */
static inline void counter_add(Counter *c, uint64_t n) {
        atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t counter_get(const Counter *c) {
        return atomic_load_explicit((Counter *)c, memory_order_relaxed);
}

/* Taken by the reader at one place of the ring: every record before it is counted, none behind it. */
typedef struct EventCut {
        uint64_t count;     /* read(2) of all its fds here */
        uint64_t ring_lost; /* PERF_FORMAT_LOST of the same read */
        uint64_t expected;      /* count of the fds that write each occurrence, losses of the others */
        uint64_t sampled;   /* samples of those others, those on standby too */
        uint64_t standby_lost, standby_expected; /* as ring_lost and expected, of fds while another generation was active */
        uint64_t delivered, filtered, duplicates, duplicates_sampled;
        /* By the reader. And by the kernel, closed fds and all, as it is known here: what is in closed_* may be of a later moment */
        uint64_t lost[_LOSS_EVENT_MAX];
        bool is_consistent;             /* false: the ring never stood still around the read, on its CPU: the cut is not consistent */
        bool is_approximate;               /* read from another CPU: the count was taken somewhere in what was read, not at its end */
} EventCut;

typedef struct EventCounters {
        /* written by the reader */
        _Alignas(64) Counter delivered; /* given to the dispatcher for at least one subscription */
        Counter filtered;               /* no subscription wanted it, or it was our own doing */
        Counter duplicates;             /* of a generation that is on standby during a live change */
        Counter sampled;                /* of fds that do not write each occurrence, those on standby too */
        Counter duplicates_sampled;     /* of these, those on standby */
        Counter lost[_LOSS_EVENT_MAX];  /* but those of the kernel */
        EventCut cut;
        uint64_t next_read; /* ns: when its counts are to be read again */
        uint64_t standby_lost, standby_expected; /* up to where fds became active, less up to where they ceased to be; mod 2^64 */
        bool standby_unsure; /* standby_expected is not: the event occurred while it was read */
        bool is_inexact;        /* a live change may have counted twice or missed the occurrence that it met, or what was lost meanwhile */
        bool is_postponed;      /* its counts were to be read at next_read, and there was no time for it */
        Counter n_postponed;    /* multiples of its interval at which it was not read, because there was none */

        /* written by the supervisor: of fds that are closed */
        _Alignas(64) uint64_t closed_count;
        Counter closed_lost; /* a reader whose cut main does not wait for looks at these two */
        Counter closed_expected;
        Counter closed_standby_lost, closed_standby_expected; /* of those that were on standby in the end */
        uint64_t emitted; /* of an external event, whose samples main counts: closed_count and closed_expected are as of its cut */
        bool unsure; /* changes were made while its reader did not answer, or a child was born in the middle of one */
} EventCounters;

_Static_assert(sizeof(EventCounters) == 5 * 64,
               "there is one for each event and CPU: if a new row of loss.def makes it longer, write its new number of lines here");

/*
 * What has to be accounted for: the kernel's count of the fds that wrote each occurrence, and of those that did not,
 * whose count says nothing of their samples, what was read and lost. An event can have had both, by a live change of its
 * period; so what it was exact for stays proven.
 */
static inline uint64_t counters_expected(const EventCounters *c) {
        return c->cut.expected + counter_get(&c->closed_expected) + c->cut.sampled;
}

/* What fds lost while other ones were active: occurrences that these have, or have lost, themselves. */
static inline uint64_t counters_standby_lost(const EventCounters *c) {
        return c->cut.standby_lost + c->standby_lost + counter_get(&c->closed_standby_lost);
}

/*
 * All that those counted, and of those that sample what was read and lost. Where that could not be read: what was read of all of
 * it, and what was lost; then what the kernel did not write of it is taken for occurrences.
 */
static inline uint64_t counters_duplicates(const EventCounters *c) {
        if (c->standby_unsure)
                return c->cut.duplicates + counters_standby_lost(c);
        return c->cut.standby_expected + c->standby_expected + counter_get(&c->closed_standby_expected) + c->cut.duplicates_sampled;
}

/* Of all fds, without what they lost while other ones were active. */
static inline uint64_t counters_ring_lost(const EventCounters *c) {
        return c->cut.ring_lost + counter_get(&c->closed_lost) - counters_standby_lost(c);
}

static inline uint64_t counters_occurred(const EventCounters *c) {
        return counters_expected(c) - counters_duplicates(c);
}

/*
 * Occurrences that the kernel counted without writing a record and without counting that as a loss: it does so when a
 * change of perf events from another CPU, anybody's, interrupts it in between (seen on 6.18). They are what is left of
 * its count when everything that was read and lost is taken off; that everything that was read is accounted for is what
 * the ring's own row says.
 */
static inline uint64_t counters_unwritten(const EventCounters *c) {
        const uint64_t occurred = counters_occurred(c);
        uint64_t known = c->cut.delivered + c->cut.filtered + counters_ring_lost(c);

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                known += i != LOSS_KERNEL_RING && i != LOSS_KERNEL_UNWRITTEN ? c->cut.lost[i] : 0;
        return c->cut.is_consistent && !c->cut.is_approximate && occurred > known ? occurred - known : 0;
}

/* The cut is complete: all that closed fds have counted is of the same moment, and so may be added up now, but not later. */
static inline void counters_note_kernel(EventCounters *c) {
        c->cut.lost[LOSS_KERNEL_RING] = counters_ring_lost(c);
        c->cut.lost[LOSS_KERNEL_UNWRITTEN] = counters_unwritten(c);
}

/* The cut of an event whose fds are closed, or are about to be: all that they counted is in closed_*, and nothing moves. */
static inline void counters_settle(EventCounters *c) {
        c->cut = (EventCut){ .delivered = counter_get(&c->delivered), .filtered = counter_get(&c->filtered),
                             .duplicates = counter_get(&c->duplicates), .sampled = counter_get(&c->sampled),
                             .duplicates_sampled = counter_get(&c->duplicates_sampled), .is_consistent = true };
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                c->cut.lost[i] = counter_get(&c->lost[i]);
        counters_note_kernel(c);
}

/* The cut of what clients emit: only up to here it is known what became of it. */
static inline void counters_settle_emitted(EventCounters *c) {
        counters_settle(c);
        counter_add(&c->closed_expected, c->emitted - c->closed_count);
        c->closed_count = c->emitted;
        counters_note_kernel(c);
}

/* What one ring carried, samples or not. Written by its reader. */
typedef struct RingCounters {
        _Alignas(64) Counter records, samples, side_records;
        Counter unknown_id, undecodable; /* of records that belong to no event */
        Counter resyncs;                 /* times that the ring's bytes could not be followed */
        Counter wakeups, batches;
        Counter pool_waits; /* drains that stopped because no batch was free */
        Counter failovers;  /* times that a backup began to read it */
        Counter foreign_times; /* samples whose time was of another tool's clock */
        uint64_t cut_side_lost; /* as EventCut.ring_lost, of the carrier */
        uint64_t closed_side_lost; /* of carriers that are closed; written by the supervisor while there is no reader */
        uint64_t cut_records, cut_samples, cut_side_records, cut_unknown_id, cut_undecodable;
} RingCounters;
