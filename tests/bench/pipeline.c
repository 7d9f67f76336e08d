/*
 * What the supervisor does at start, by hand and without the kernel: a snapshot of one event, its streams, a route. The
 * samples of a turn have times between the turn's beginning and the readers' clock, so that a merge by time can let all
 * of them go at once.
 */
#include "tests/bench/pipeline.h"

#include <stdio.h>

#include "daemon/route/match.h"
#include "tests/unit/format-file.h"
#include "tests/unit/kernel-records.h"

#define STREAM_ID 1000 /* of slot 0 */
#define CARRIER_ID 1
#define PLAYED_TID 0x5bd6 /* of RECORD_SYS_ENTER */
#define TIMES_APART 2 /* ns between two samples: less than it takes to write one */

static const struct {
        const char *format;
        const uint64_t *record;
        bool is_syscall;
} played_events[] = {
        [PLAYED_SYS_ENTER] = { "raw_syscalls.sys_enter", RECORD_SYS_ENTER, true },
        [PLAYED_SWITCH] = { "sched.sched_switch", RECORD_SWITCH, false },
};

static void fail(const char *what) {
        fprintf(stderr, "bench-pipeline: %s\n", what);
        exit(EXIT_FAILURE);
}

static void *need(void *memory) {
        if (!memory)
                fail("no memory");
        return memory;
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
        *state ^= *state << 13;
        *state ^= *state >> 7;
        return *state ^= *state << 17;
}

size_t pipeline_fill(PlayedRing *rings, const PipelineShape *shape, uint64_t *random) {
        const uint64_t *record = played_events[shape->event].record;
        nsec_t time = clock_now(CLOCK_MONOTONIC);
        struct perf_event_header header;
        size_t n;

        memcpy(&header, record, sizeof(header));
        n = PIPELINE_FILL / header.size * shape->n_busy;
        for (size_t i = 0; i < n; i++, time += TIMES_APART) {
                uint64_t r = next_random(random), syscall = (r >> 32) % 100;
                uint32_t slot = (uint32_t)(r % shape->n_busy);

                played_ring_put(&rings[slot], record, STREAM_ID + slot, time,
                                played_events[shape->event].is_syscall ? &syscall : NULL);
        }
        while (clock_now(CLOCK_MONOTONIC) < time)
                ;
        for (unsigned i = 0; i < shape->n_cpus; i++)
                played_ring_publish(&rings[i]);
        return n;
}

/* ---- made once --------------------------------------------------------------------------------------------------- */

static MatchProgram *compile(const char *where, const Plan *plan) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;
        MatchProgram *program = NULL;

        if (filter_parse(where, &filter, &e) != 0 || filter_compile(filter, plan, &program, &e) != 0)
                fail(e.text);
        return program;
}

static void drop_references(Snapshot *s) {
        SnapshotEvent *e = &s->events[0];

        for (size_t i = 0; i < e->n_routes; i++)
                match_program_unref((MatchProgram *)e->routes[i].program);
        for (size_t i = 0; i < e->n_encodings; i++)
                encode_plan_unref(e->encodings[i]);
}

static Snapshot *pipeline_snapshot(Pipeline *p) {
        EventSpec spec = EVENT_SPEC_NULL;
        Snapshot *s = need(snapshot_new(1, p->shape.n_cpus, 1));
        SnapshotEvent *e = &s->events[0];

        s->deinit = drop_references;
        s->active = true;
        e->event = need(event_new(1, &spec, p->plan, p->shape.n_cpus));
        e->layout = &p->layout;
        e->routes = need(calloc(1, sizeof(*e->routes)));
        e->encodings = need(calloc(1, sizeof(*e->encodings)));
        if (p->shape.is_subscribed) {
                e->encodings[e->n_encodings++] = need(encode_plan_new(p->plan, 1, p->shape.payload, NULL, 0));
                e->routes[e->n_routes++] = (Route){ .bit = 1, .program = match_program_ref(p->program) };
        }
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++) {
                SnapshotStream *stream = need(calloc(1, sizeof(*stream)));

                *stream = (SnapshotStream){ .id = STREAM_ID + slot, .fd = -1 };
                if (snapshot_set_streams(s, slot, stream, 1) < 0)
                        fail("no memory");
        }
        return s;
}

static void pipeline_init_readers(Pipeline *p) {
        Snapshot *snapshot = pipeline_snapshot(p);

        if (comm_table_init(&p->comms, 1024) < 0)
                fail("no memory");
        p->rings = need(calloc(p->shape.n_cpus, sizeof(*p->rings)));
        p->readers = need(aligned_alloc(64, p->shape.n_cpus * sizeof(*p->readers)));
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++) {
                Reader *r = memset(&p->readers[slot], 0, sizeof(*r));

                *r = (Reader){ .cpu = slot, .slot = slot, .clock = CLOCK_MONOTONIC, .carrier_fd = -1,
                               .carrier_id = CARRIER_ID, .comms = &p->comms, .dispatcher = &p->dispatcher.doorbell,
                               .acknowledge_fd = -1, .mailbox = MAILBOX_NULL };
                played_ring_init(&p->rings[slot], PIPELINE_RING);
                if (ring_init_memory(&r->ring, p->rings[slot].page, PIPELINE_RING) < 0 ||
                    reader_init(r, PIPELINE_POOL) < 0)
                        fail("no memory");
                r->snapshot = snapshot_ref(snapshot);
        }
        snapshot_unref(snapshot);
}

static void pipeline_init_dispatcher(Pipeline *p) {
        static const TaskNote workload = { .kind = TASK_NOTE_COMM, .pid = PLAYED_TID, .tid = PLAYED_TID, .text = "workload",
                                           .n_text = 8 };
        Subscriber *s;

        p->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC, .mailbox = MAILBOX_NULL, .words = MAILBOX_NULL,
                                      .doorbell = DOORBELL_NULL };
        p->lanes = need(calloc(p->shape.n_cpus, sizeof(*p->lanes)));
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++)
                p->lanes[slot] = reader_lane(&p->readers[slot]);
        if (dispatcher_init(&p->dispatcher, p->lanes, p->shape.n_cpus, 1) < 0)
                fail("no dispatcher");
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                if (task_table_apply(&p->dispatcher.tasks[order], 1, &workload) < 0)
                        fail("no memory");
        if (!p->shape.is_subscribed)
                return;
        peer_open(&p->peer);
        s = need(calloc(1, sizeof(*s)));
        *s = (Subscriber){ .id = 1, .fd = p->peer.fd, .order = p->shape.order, .since = 1,
                           .overflow = OVERFLOW_DROP_OLDEST, .queue_bytes = (size_t)64 << 20 };
        p->peer.fd = -1; /* the dispatcher closes it */
        if (dispatcher_subscribe(&p->dispatcher, s) < 0 || dispatcher_begin(&p->dispatcher, s->id) < 0)
                fail("no subscriber");
        p->subscriber = s;
}

void pipeline_init(Pipeline *p, const PipelineShape *shape) {
        memset(p, 0, sizeof(*p));
        p->shape = *shape;
        p->random = 88172645463325252;
        p->plan = format_file_plan(played_events[shape->event].format);
        p->program = shape->where ? compile(shape->where, p->plan) : NULL;
        if (sample_layout_init_type(&p->layout, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) != 0)
                fail("no layout");
        pipeline_init_readers(p);
        pipeline_init_dispatcher(p);
}

void pipeline_deinit(Pipeline *p) {
        dispatcher_deinit(&p->dispatcher);
        if (p->subscriber)
                peer_close(&p->peer);
        for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                reader_deinit(&p->readers[i]);
                played_ring_deinit(&p->rings[i]);
        }
        free(p->readers);
        free(p->lanes);
        free(p->rings);
        comm_table_deinit(&p->comms);
        match_program_unref(p->program);
        plan_unref(p->plan);
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

static void pipeline_read(Pipeline *p) {
        for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                Reader *r = &p->readers[i];

                if (reader_drain(r) != 0)
                        fail("a reader starves");
                if ((r->batch && r->batch->n_entries > 0) || p->shape.order == STREAM_BY_TIME)
                        reader_push_batch(r); /* of a quiet CPU too: the merge has asked it how far it is */
        }
}

/* dispatcher_turn() without its mails. */
static void pipeline_dispatch(Pipeline *p) {
        bool any;
        int r = 0;

        do {
                any = false;
                for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                        Batch *b = queue_pop(&p->readers[i].full);

                        if (!b)
                                continue;
                        any = true;
                        r = r < 0 ? r : dispatcher_take_batch(&p->dispatcher, b);
                }
        } while (any);
        r = r < 0 ? r : dispatcher_release(&p->dispatcher);
        r = r < 0 ? r : dispatcher_flush(&p->dispatcher);
        if (r < 0)
                fail("the dispatcher failed");
}

/* The socket was full. */
static void pipeline_send_rest(Pipeline *p) {
        const Outbox *o = &p->subscriber->outbox;
        uint64_t sent = o->sent_items;
        size_t part = o->head_sent;

        peer_drain(&p->peer);
        stopwatch_start(&p->dispatching);
        if (subscriber_send(&p->dispatcher, p->subscriber) < 0)
                fail("the dispatcher failed");
        stopwatch_stop(&p->dispatching);
        if (o->sent_items == sent && o->head_sent == part)
                fail("a socket that can be written to was given nothing");
}

void pipeline_turn(Pipeline *p) {
        p->n_samples += pipeline_fill(p->rings, &p->shape, &p->random);
        stopwatch_start(&p->reading);
        pipeline_read(p);
        stopwatch_stop(&p->reading);

        stopwatch_start(&p->dispatching);
        pipeline_dispatch(p);
        stopwatch_stop(&p->dispatching);
        while (p->subscriber && !outbox_is_empty(&p->subscriber->outbox))
                pipeline_send_rest(p);
        if (p->subscriber)
                peer_drain(&p->peer);
}

void pipeline_check(const Pipeline *p) {
        const Event *event = p->readers[0].snapshot->events[0].event;
        uint64_t delivered = 0, filtered = 0, read = 0;

        for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                delivered += counter_get(&event->counters[i].delivered);
                filtered += counter_get(&event->counters[i].filtered);
                read += counter_get(&p->readers[i].counters.samples);
        }
        if (delivered + filtered != read || (p->shape.is_subscribed && !p->shape.where && filtered > 0))
                fail("samples were lost");
        if (p->subscriber && (p->subscriber->matched != delivered || p->subscriber->outbox.sent_items != delivered))
                fail("samples did not leave");
}
