#include "daemon/supervisor/readers/births.h"

#include <stdlib.h>

#include "daemon/base/fd-limit.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/readers.h"

#define FORK_NSEC (10 * NSEC_PER_SEC)  /* longer than a fork takes, however busy its CPU is */
#define TELL_USEC UINT64_C(12000000)   /* when the records of it have been read */
#define TELL_ACCURACY_USEC UINT64_C(1000000)
#define LOOKS_MAX 1000 /* tasks that main looks at in one go: some 10 ms */
#define DOUBTS_MAX 64

static void doubt_free(BirthDoubt *d) {
        for (size_t i = 0; d && i < d->n_events; i++)
                event_unref(d->events[i]);
        if (d)
                birth_watch_deinit(&d->watch);
        free(d);
}

void births_mark(Event *event) {
        for (uint32_t slot = 0; slot < event->n_slots; slot++)
                event->counters[slot].unsure = true;
}

static void mark_all(const BirthDoubt *d) {
        for (size_t i = 0; i < d->n_events; i++)
                births_mark(d->events[i]);
}

/* ---- who may be in a fork ---------------------------------------------------------------------------------------- */

bool births_are_inherited(const PerfFdSet *o) {
        return o->event && !o->event->spec.no_inherit && o->n > 0 && o->fds[0].target_id != 0 && !o->fds[0].is_cgroup;
}

static int add_roots(BirthWatch *w, const PerfFdSet *o) {
        uint32_t *more = reallocarray(w->roots, w->n_roots + o->n, sizeof(*more));

        if (!more)
                return error_origin(-ENOMEM);
        w->roots = more;
        for (size_t i = 0; i < o->n; i++)
                if (o->fds[i].member == 0 && !o->fds[i].is_cgroup)
                        w->roots[w->n_roots++] = (uint32_t)o->fds[i].target_id;
        return 0;
}

/* What was opened since the last time is looked at as such once. */
static void take_opened(BirthWatch *w, PerfFdSet *o) {
        if (o->whole > w->opened)
                w->opened = o->whole;
        if (o->listed != 0 && (w->listed == 0 || o->listed < w->listed))
                w->listed = o->listed;
        o->whole = o->listed = 0;
}

static void sort_roots(BirthWatch *w) {
        size_t n = 0;

        if (w->n_roots > 0) /* or there is no array */
                qsort(w->roots, w->n_roots, sizeof(*w->roots), births_compare_tids);
        for (size_t i = 0; i < w->n_roots; i++)
                if (n == 0 || w->roots[n - 1] != w->roots[i])
                        w->roots[n++] = w->roots[i];
        w->n_roots = n;
}

int births_list_roots(BirthWatch *w, const PerfFdSet *o) {
        int r = add_roots(w, o);

        sort_roots(w);
        return r;
}

/* inherit_event() waits for nothing in a state in which a signal would end the wait. */
static bool may_fork(uint32_t tid) {
        WITH_FD_RESERVE;
        char state = task_state(tid);

        return state == 'R' || state == TASK_STATE_UNINTERRUPTIBLE;
}

static void look_at(BirthWatch *w, uint32_t tid, size_t *n_looks) {
        if (w->all_busy || ++*n_looks > LOOKS_MAX) {
                w->all_busy = true;
                return;
        }
        if (may_fork(tid))
                w->busy[w->n_busy++] = tid;
}

/* *ret_any: somebody inherits. Those that an event was opened on long ago fork under the lock of the switch. */
static int look_at_all(const Readers *s, BirthWatch *w, bool *ret_any) {
        size_t at = 0, n_looks = 0;
        ProcessTreeEntry k;

        w->busy = malloc(LOOKS_MAX * sizeof(*w->busy));
        if (!w->busy)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < w->n_roots && w->opened != 0; i++)
                look_at(w, w->roots[i], &n_looks);
        *ret_any = w->opened != 0;
        while (process_tree_next(&s->process_tree, &at, &k)) {
                if (k.has_ended || k.is_root || !births_concern(&s->process_tree, w, k.tid))
                        continue;
                look_at(w, k.tid, &n_looks);
                *ret_any = true;
        }
        qsort(w->busy, w->n_busy, sizeof(*w->busy), births_compare_tids);
        return 0;
}

int readers_doubt_births(Readers *s, PerfFdSet *const *list, size_t n, BirthDoubt **ret) {
        size_t n_events = 0;
        bool any = false;
        BirthDoubt *d;
        int r = 0;

        *ret = NULL;
        for (size_t i = 0; i < n; i++)
                n_events += births_are_inherited(list[i]);
        if (n_events == 0)
                return 0;
        d = calloc(1, sizeof(*d) + n_events * sizeof(Event *));
        if (!d)
                return error_origin(-ENOMEM);
        d->watch.first = clock_now(s->attr.clock);
        for (size_t i = 0; i < n && r == 0; i++)
                if (births_are_inherited(list[i])) {
                        d->events[d->n_events++] = event_ref(list[i]->event);
                        r = add_roots(&d->watch, list[i]);
                        take_opened(&d->watch, list[i]);
                }
        sort_roots(&d->watch);
        if (r == 0)
                r = look_at_all(s, &d->watch, &any);
        if (r == 0 && any)
                *ret = d;
        else
                doubt_free(d);
        return r;
}

/* ---- what became of it ------------------------------------------------------------------------------------------- */

static bool is_decided(const BirthDoubt *d, nsec_t now) {
        return now > d->until || (d->watch.n_busy == 0 && !d->watch.all_busy);
}

/* Of what is decided nothing more is to come; it goes. */
void readers_judge_births(Readers *s) {
        BirthDoubt **next = &s->births.first;
        nsec_t now;

        s->hooks.judge_probes(s->hooks.userdata);
        if (!s->births.first)
                return;
        now = clock_now(s->attr.clock);
        while (*next) {
                BirthDoubt *d = *next;
                bool is_doubtful = births_doubtful(&s->process_tree, &d->watch, d->until);

                if (is_doubtful)
                        mark_all(d);
                if (!is_doubtful && !is_decided(d, now)) {
                        next = &d->next;
                        continue;
                }
                *next = d->next;
                s->births.n--;
                doubt_free(d);
        }
}

void readers_watch_births(Readers *s, BirthDoubt *doubt, nsec_t second) {
        doubt->watch.second = second;
        doubt->until = second + FORK_NSEC;
        readers_judge_births(s);
        if (s->births.n == DOUBTS_MAX) { /* nobody has looked for long: rather not exact */
                mark_all(doubt);
                doubt_free(doubt);
                return;
        }
        doubt->next = s->births.first;
        s->births.first = doubt;
        s->births.n++;
        must(sd_event_source_set_time_relative(s->births.timer, TELL_USEC));
        must(sd_event_source_set_enabled(s->births.timer, SD_EVENT_ONESHOT));
}

static int on_told(sd_event_source *source, uint64_t usec, void *userdata) {
        readers_judge_births(userdata);
        return 0;
}

int readers_start_births(Readers *s) {
        int r = error_origin(sd_event_add_time(s->operations->event, &s->births.timer, CLOCK_MONOTONIC, 0,
                                               TELL_ACCURACY_USEC, on_told, s));

        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->births.timer, SD_EVENT_OFF));
        return r < 0 ? r : 0;
}

void readers_free_births(Readers *s) {
        while (s->births.first) {
                BirthDoubt *d = s->births.first;

                s->births.first = d->next;
                doubt_free(d);
        }
        s->births.timer = sd_event_source_disable_unref(s->births.timer);
}
