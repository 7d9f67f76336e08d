/*
 * Replaces impossible times. The kernel prepares the samples of all software events of one kind that one occurrence hits
 * together, and the first of these events sets the time for all, by its clock (perf_prepare_sample(), since Linux 6.3). It may be
 * another tool's event, of any user, with another clock: a time years ahead would hold the merge, and all streams ordered by
 * time, until then.
 *
 * On the ring's own CPU, a record's time is between the last watermark and the clock after the head was read. A sample of a
 * software event whose time is outside of that gets the time of the previous sample of a software event, or of the previous item:
 * a ring is in the order of occurrence. The new time is never older than the watermark, so that the sample is not late. A clock
 * that differs by less than the time between two drains is not noticed.
 */
#include "daemon/reader/cycle.h"

#include "daemon/base/log.h"
#include "daemon/encode/item.h"

#define TELL_EACH (10 * 60 * NSEC_PER_SEC)

static nsec_t greater(nsec_t a, nsec_t b) {
        return a > b ? a : b;
}

nsec_t reader_mend_time(const Reader *r, bool is_shared, nsec_t time) {
        const Batch *b = r->batch;
        nsec_t now = clock_now(r->clock), least = is_shared && reader_guard(r) == 0 ? r->given : 0, before;

        if (time >= least && time <= now)
                return time;
        before = greater(r->given, r->shared_time);
        if (b && b->n_entries > 0)
                before = greater(before, b->entries[b->n_entries - 1].time);
        return before < now ? before : now;
}

void reader_tell_times(Reader *r) {
        uint64_t times = counter_get(&r->counters.foreign_times);
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        if (r->told_times_at > 0 && now - r->told_times_at < TELL_EACH)
                return;
        log_print_with(LOG_WARNING, MESSAGE_FOREIGN_CLOCK, LOG_FIELDS({ "CPU", LOG_NUMBER(r->cpu) }),
                       "%llu samples of software events on CPU %u had a time of another tool's clock, and get that of the "
                       "previous sample: end that tool, or let it use the clock of perfd's configuration (perf record -k)",
                       (unsigned long long)(times - r->told_times), r->cpu);
        r->told_times = times;
        r->told_times_at = now;
}

void reader_keep_behind_clock(const Reader *r, Batch *b) {
        size_t n = b->n_entries;
        nsec_t now;

        if (n == 0 || b->entries[n - 1].time <= r->began)
                return;
        now = clock_now(r->clock);
        for (; n > 0 && b->entries[n - 1].time > now; n--) {
                BatchEntry *e = &b->entries[n - 1];

                e->time = now;
                if (e->event != BATCH_MARKER)
                        item_set_time(b->arena + entry_offset(e), e->length, now);
        }
}
