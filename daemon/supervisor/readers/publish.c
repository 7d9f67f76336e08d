/*
 * What is registered and subscribed, as one immutable snapshot to all readers. The supervisor waits for their
 * acknowledgements: a reader never waits for anything but its batches, which the dispatcher always gives back, so that
 * the wait is that of a thread being scheduled. One that does not answer for long was stopped by somebody: the others go on
 * without it (supervisor/readers/stall.c).
 */
#include "daemon/supervisor/supervisor.h"

#include <poll.h>
#include <string.h>
#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/supervisor/resolve/external.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/wait.h"

#define PATIENCE (5 * NSEC_PER_SEC)

/* 0 is none. */
static nsec_t lesser_latency(nsec_t a, nsec_t b) {
        return a == 0 || (b > 0 && b < a) ? b : a;
}

static int snapshot_add_closed(SnapshotEvent *e) {
        size_t n = (size_t)e->event->n_slots * e->event->n_members;

        e->closed = malloc(n * sizeof(*e->closed));
        if (!e->closed)
                return error_origin(-ENOMEM);
        memcpy(e->closed, e->event->closed_reads, n * sizeof(*e->closed));
        return 0;
}

static size_t count_streams(const Opened *o, uint32_t slot) {
        size_t n = 0;

        for (size_t i = 0; i < o->n; i++)
                n += o->streams[i].slot == slot;
        return n;
}

static size_t put_streams(const Registration *g, const Opened *o, uint32_t slot, uint32_t event, SnapshotStream *to) {
        const SampleLayout *layout = o == &g->pending && g->pending_layout ? g->pending_layout : g->layout;
        size_t n = 0;

        for (size_t i = 0; i < o->n; i++) {
                const Stream *stream = &o->streams[i];

                if (stream->slot == slot)
                        to[n++] = (SnapshotStream){ .id = stream->id, .fd = stream->fd, .member = stream->member,
                                                    .read_format = stream->read_format, .is_standby = o == &g->pending,
                                                    .is_successor = stream->is_successor,
                                                    .is_sampling = stream->is_sampling, .period = stream->period,
                                                    .record_layout = layout->layout, .layout = layout, .event = event,
                                                    .is_shared = g->plan.attrs[0].type == PERF_TYPE_SOFTWARE };
        }
        return n;
}

static int snapshot_add_streams(const Supervisor *s, Snapshot *snapshot, uint32_t slot) {
        SnapshotStream *streams;
        uint32_t event = 0;
        size_t n = 0;
        int r;

        for (const Registration *g = s->registrations; g; g = g->next)
                n += count_streams(&g->opened, slot) + count_streams(&g->pending, slot);
        streams = snapshot_streams_new(n);
        if (!streams)
                return error_origin(-ENOMEM);
        n = 0;
        for (const Registration *g = s->registrations; g; g = g->next, event++) {
                n += put_streams(g, &g->opened, slot, event, streams + n);
                n += put_streams(g, &g->pending, slot, event, streams + n);
        }
        r = snapshot_set_streams(snapshot, slot, streams, n);
        if (r < 0)
                free(streams);
        return r;
}

/* Side records come from every CPU. */
static nsec_t records_latency(const Supervisor *s) {
        nsec_t latency = 0;

        for (const Subscription *u = s->subscriptions; u; u = u->next)
                if (u->records)
                        latency = lesser_latency(latency, u->latency);
        return latency;
}

static void snapshot_add_latency(Snapshot *snapshot, uint32_t slot, nsec_t records) {
        SnapshotCpu *c = &snapshot->cpus[slot];

        c->latency = snapshot->active ? records : 0;
        for (size_t i = 0; i < c->n_streams; i++)
                c->latency = lesser_latency(c->latency, snapshot->events[c->streams[i].event].latency);
        snapshot->latency = lesser_latency(snapshot->latency, c->latency);
}

static void snapshot_add_wants(const Supervisor *s, Snapshot *snapshot) {
        for (const Subscription *u = s->subscriptions; u; u = u->next) {
                for (unsigned kind = 0; kind < _RECORD_KIND_MAX; kind++)
                        if (u->records & (1U << kind))
                                subscription_set_add(&snapshot->record_wants[kind], u->number);
                subscription_set_add(&snapshot->all_want, u->number);
        }
}

/* By attr wakeup-events, whatever a user has called it. */
static bool registration_wakes(const Registration *g) {
        for (size_t i = 0; i < g->plan.n_attrs; i++)
                if (!g->plan.attrs[i].watermark && g->plan.attrs[i].wakeup_events > 0)
                        return true;
        return false;
}

static int snapshot_add_routes(SnapshotEvent *e, Registration *g) {
        RouteTable *table;
        int r = registration_route_table(g, &table);

        if (r == 0)
                snapshot_set_routes(e, table);
        return r;
}

static int snapshot_build(Supervisor *s, Snapshot **ret) {
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        nsec_t latency = records_latency(s);
        size_t i = 0;
        int r;

        snapshot = snapshot_new(s->generation + 1, (uint32_t)s->n_cpus, s->n_registrations);
        if (!snapshot)
                return error_origin(-ENOMEM);
        for (Registration *g = s->registrations; g; g = g->next) {
                SnapshotEvent *e = &snapshot->events[i++];

                e->event = event_ref(g->event);
                e->layout = g->layout;
                e->exclude_self = g->exclude_self;
                e->interval = g->enabled ? g->event->spec.interval : 0;
                snapshot->active |= g->enabled && !g->event->external;
                snapshot->wakes |= g->enabled && registration_wakes(g);
                r = e->interval ? snapshot_add_closed(e) : 0;
                if (r == 0)
                        r = snapshot_add_routes(e, g);
                if (!g->enabled || g->event->external)
                        e->latency = 0;
                if (r < 0)
                        return r;
        }
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                r = snapshot_add_streams(s, snapshot, slot);
                if (r < 0)
                        return r;
                snapshot_add_latency(snapshot, slot, latency);
        }
        snapshot_add_wants(s, snapshot);
        snapshot->notes = s->wants_tasks;
        *ret = TAKE_PTR(snapshot);
        return 0;
}

bool reader_has_answered(const Supervisor *s, uint32_t slot) {
        return atomic_load_explicit(&s->readers[slot].acknowledged, memory_order_acquire) >= s->answering.readers[slot].sequence;
}

/* Its acknowledgement is waited for. */
static bool is_awaited(const Supervisor *s, uint32_t slot) {
        return s->readers[slot].thread.started && !reader_is_stalled(&s->answering.readers[slot]) && !reader_has_answered(s, slot);
}

static bool all_acknowledged(const Supervisor *s) {
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (is_awaited(s, slot))
                        return false;
        return true;
}

/* 1: one has answered. 0: a slice is over. Negative: what serving others has said. */
static int wait_once(Supervisor *s, Patience *p) {
        int r = supervisor_wait_slice(s, p, s->acknowledge_fd);
        uint64_t count;
        ssize_t n;

        if (r > 0) {
                n = read(s->acknowledge_fd, &count, sizeof(count));
                assert(n == sizeof(count) || errno == EAGAIN);
        }
        return r;
}

/* Negative: what serving others has said; all the same nobody is awaited any more. */
static int supervisor_wait_for_readers(Supervisor *s) {
        Patience p = patience_new();
        int r, result = 0;

        while (!all_acknowledged(s)) {
                r = wait_once(s, &p);
                if (r < 0)
                        result = r;
                for (uint32_t slot = 0; r <= 0 && patience_is_over(s, &p, PATIENCE) && slot < s->n_cpus; slot++)
                        if (is_awaited(s, slot))
                                supervisor_set_stalled(s, slot);
        }
        return result;
}

/* With fds of its own: who is stopped in the middle of it may look at them when main has long forgotten them. */
static ReaderCommand *mail_copy(const ReaderCommand *from) {
        ReaderCommand *mail = malloc(sizeof(*mail) + from->n_fds * sizeof(*mail->own_fds));

        if (!mail)
                return NULL;
        *mail = *from;
        if (from->n_fds > 0)
                memcpy(mail->own_fds, from->fds, from->n_fds * sizeof(*mail->own_fds));
        mail->fds = mail->own_fds;
        return mail;
}

static void send_mail(Supervisor *s, uint32_t slot, ReaderCommand *mail) {
        Reader *reader = &s->readers[slot];

        s->answering.readers[slot].sequence = mail->sequence = s->sequence;
        s->answering.readers[slot].kind = mail->kind;
        s->answering.readers[slot].sent = clock_now(CLOCK_MONOTONIC);
        reader->mail_error = 0;
        if (mail->kind == READER_SET_SNAPSHOT) {
                snapshot_unref(s->answering.readers[slot].snapshot);
                s->answering.readers[slot].snapshot = snapshot_ref(mail->snapshot);
        }
        if (mail->ret_error)
                mail->ret_error = &reader->mail_error;
        mail->snapshot = snapshot_ref(mail->snapshot);
        reader_post(reader, mail);
}

/* Its reader is stalled. To disable needs no reader; all else is found out when it answers. */
static void do_without(Supervisor *s, uint32_t slot, const ReaderCommand *mail) {
        Answering *a = &s->answering.readers[slot];

        if (mail->kind == READER_CUT)
                return;
        a->n_missed++;
        a->owes_retire |= mail->kind == READER_RETIRE;
        if (!mail->on && mail->n_fds > 0 && *mail->ret_error == 0)
                *mail->ret_error = open_switch_all(mail->fds, mail->n_fds, false);
}

int supervisor_order_each(Supervisor *s, const ReaderCommand *each) {
        _cleanup_free_ ReaderCommand **mails = calloc(s->n_cpus + 1, sizeof(*mails));
        bool have = mails;
        int r;

        for (uint32_t i = 0; i < s->n_cpus && have; i++)
                if (s->readers[i].thread.started && !reader_is_stalled(&s->answering.readers[i]))
                        have = (mails[i] = mail_copy(&each[i]));
        if (!have) { /* all or none */
                for (size_t i = 0; mails && i < s->n_cpus; i++)
                        free(mails[i]);
                return error_origin(-ENOMEM);
        }
        s->sequence++;
        for (uint32_t i = 0; i < s->n_cpus; i++)
                if (mails[i])
                        send_mail(s, i, mails[i]);
                else if (s->readers[i].thread.started)
                        do_without(s, i, &each[i]);
        r = supervisor_wait_for_readers(s);
        for (uint32_t i = 0; i < s->n_cpus; i++) {
                if (!mails[i])
                        continue;
                if (reader_is_stalled(&s->answering.readers[i])) /* it is in the middle of it */
                        do_without(s, i, &each[i]);
                else if (each[i].ret_error)
                        *each[i].ret_error = s->readers[i].mail_error;
        }
        return r;
}

/* cut: 0, or the number of the cut that belongs to it. */
static int order_all(Supervisor *s, ReaderCommandKind kind, Snapshot *snapshot, uint64_t cut) {
        _cleanup_free_ ReaderCommand *each = calloc(s->n_cpus + 1, sizeof(*each));

        if (!each)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < s->n_cpus; i++)
                each[i] = (ReaderCommand){ .kind = kind, .snapshot = snapshot, .cut = cut };
        return supervisor_order_each(s, each);
}

int supervisor_order(Supervisor *s, ReaderCommandKind kind, Snapshot *snapshot) {
        return order_all(s, kind, snapshot, 0);
}

int supervisor_cut(Supervisor *s) {
        int r = order_all(s, READER_CUT, NULL, ++s->n_cuts);

        if (r == 0) {
                supervisor_judge_births(s);
                supervisor_cut_external(s);
        }
        return r;
}

/* Those that had not answered a look before this one, which has given them their moment too. */
static void find_stalled(Supervisor *s) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (is_awaited(s, slot) && now - s->answering.readers[slot].sent >= PATIENCE)
                        supervisor_set_stalled(s, slot);
}

int supervisor_cut_at_once(Supervisor *s) {
        Patience p = patience_new();
        int r = 0;

        s->sequence++;
        s->n_cuts++;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                ReaderCommand *mail;

                if (!s->readers[slot].thread.started || reader_is_stalled(&s->answering.readers[slot]) || is_awaited(s, slot))
                        continue; /* what it was asked before is a cut too, or more */
                mail = mail_copy(&(ReaderCommand){ .kind = READER_CUT, .cut = s->n_cuts });
                if (!mail)
                        return error_origin(-ENOMEM);
                send_mail(s, slot, mail);
        }
        while (r >= 0 && !all_acknowledged(s) && !patience_is_over(s, &p, LOOK_MOST))
                r = wait_once(s, &p);
        find_stalled(s);
        supervisor_judge_births(s);
        supervisor_cut_external(s);
        return r < 0 ? r : 0;
}

/* Streams change over only where there are others beside those that are active. */
static bool has_pending(const Supervisor *s) {
        for (const Registration *g = s->registrations; g; g = g->next)
                if (g->pending.n > 0)
                        return true;
        return false;
}

/* What readers need to find the places where streams change over, in one piece. -ENOMEM */
static int make_turned(const Supervisor *s, const Snapshot *snapshot, ReaderCommand *each, TurnedStream **ret) {
        TurnedStream *turned;
        size_t n = 0;

        if (!has_pending(s))
                return 0;
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                n += snapshot->cpus[slot].n_streams;
        turned = malloc((n + 1) * sizeof(*turned));
        if (!turned)
                return error_origin(-ENOMEM);
        *ret = turned;
        for (size_t slot = 0; slot < s->n_cpus; slot++) {
                each[slot].turned = turned;
                turned += snapshot->cpus[slot].n_streams;
        }
        return 0;
}

static void release_turned(Supervisor *s, void *turned) {
        if (!s->answering.is_abandoned)
                free(turned);
}

static int supervisor_order_adopt(Supervisor *s, Snapshot *snapshot, uint64_t cut) {
        _cleanup_free_ ReaderCommand *each = calloc(s->n_cpus + 1, sizeof(*each));
        TurnedStream *turned = NULL;
        int r;

        if (!each)
                return error_origin(-ENOMEM);
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                each[slot] = (ReaderCommand){ .kind = READER_SET_SNAPSHOT, .snapshot = snapshot, .cut = cut };
        r = make_turned(s, snapshot, each, &turned);
        if (r == 0)
                r = supervisor_order_each(s, each);
        supervisor_defer(s, release_turned, turned); /* one that was stopped in the middle of it still writes there */
        return r;
}

static int publish(Supervisor *s, uint64_t cut) {
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = NULL;
        nsec_t tick;
        int r;

        thread_assert(THREAD_MAIN);
        supervisor_flush_external(s); /* its masks are of the generation that ends */
        r = snapshot_build(s, &snapshot);
        if (r < 0)
                return r;
        r = supervisor_order_adopt(s, snapshot, cut);
        if (r < 0)
                return r;
        tick = snapshot->latency && snapshot->latency < READER_FLUSH ? snapshot->latency : READER_FLUSH;
        atomic_store_explicit(&s->dispatcher.tick, tick, memory_order_relaxed);
        s->generation = snapshot->generation;
        s->owes_snapshot = false;
        s->tells_notes = snapshot->notes;
        return 0;
}

int supervisor_publish(Supervisor *s) {
        return publish(s, 0);
}

/* Where streams change over readers look for a place of their own: the cut is behind it then. */
int supervisor_publish_at_cut(Supervisor *s) {
        int r;

        if (has_pending(s)) {
                r = publish(s, 0);
                return r < 0 ? r : supervisor_cut(s);
        }
        r = publish(s, ++s->n_cuts);
        if (r == 0)
                supervisor_cut_external(s); /* main does nothing in between */
        return r;
}
