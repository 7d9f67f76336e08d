/*
 * What the supervisor does at start, by hand and without the kernel: a snapshot of events, their streams, routes.
 *
 * Times are not those of the clock but of a world in its first seconds, so that each run has the same bytes, which
 * instructions are counted over, and the same order of CPUs at each rate, however fast this machine is. Every watermark
 * is far behind them: the merge can let all of a turn go at once.
 */
#include "tests/bench/pipeline.h"

#include <stdio.h>

#include "daemon/reader/route-sample.h"
#include "daemon/route/match.h"
#include "tests/unit/format-file.h"
#include "tests/unit/kernel-records.h"

#define STREAM_ID 1000 /* of slot 0 and the first event */
#define CARRIER_ID 1
#define PLAYED_TID 0x5bd6 /* of RECORD_SYS_ENTER; the first CPU's */
#define TIMES_APART 2 /* ns between two samples */
#define RATE_APART (NSEC_PER_SEC / PIPELINE_RATE)
#define CPUS_TOGETHER 8 /* are filled and then read, so that a reader has its ring in the cache, as on its own CPU */

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

static unsigned or_one(unsigned n) {
        return n ? n : 1;
}

static uint64_t stream_id(const PipelineShape *shape, uint32_t slot, uint32_t event) {
        return STREAM_ID + (uint64_t)slot * or_one(shape->n_events) + event;
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
        *state ^= *state << 13;
        *state ^= *state >> 7;
        return *state ^= *state << 17;
}

static void player_put(Player *player, PlayedRing *rings, const PipelineShape *shape, uint32_t slot, uint64_t random,
                       nsec_t time) {
        uint32_t event = (uint32_t)((random >> 16 & UINT16_MAX) % or_one(shape->n_fired));
        uint64_t syscall = (random >> 32) % 100;

        if (time >= player->now)
                fail("this machine runs for too short a time: try again in a minute");
        played_ring_put(&rings[slot], played_events[shape->event].record, stream_id(shape, slot, event),
                        PLAYED_TID + slot, time, played_events[shape->event].is_syscall ? &syscall : NULL);
}

size_t pipeline_fill(PlayedRing *rings, const PipelineShape *shape, Player *player) {
        struct perf_event_header header;
        size_t n;

        memcpy(&header, played_events[shape->event].record, sizeof(header));
        n = PIPELINE_FILL / header.size * shape->n_busy;
        player->now = clock_now(CLOCK_MONOTONIC);
        for (size_t i = 0; i < n; i++, player->time += TIMES_APART) {
                uint64_t r = next_random(&player->random);
                uint32_t slot = (uint32_t)((shape->in_turn ? i : r & UINT16_MAX) % shape->n_busy);

                player_put(player, rings, shape, slot, r, player->time);
        }
        for (unsigned i = 0; i < shape->n_cpus; i++)
                played_ring_publish(&rings[i]);
        return n;
}

/* What one CPU has between two drains at PIPELINE_RATE: each sample somewhere in its own part of the time. */
static size_t pipeline_fill_at_rate(PlayedRing *rings, const PipelineShape *shape, Player *player, uint32_t slot) {
        player->now = clock_now(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < shape->per_turn; i++) {
                uint64_t r = next_random(&player->random);

                player_put(player, rings, shape, slot, r, player->time + i * RATE_APART + r % RATE_APART);
        }
        played_ring_publish(&rings[slot]);
        return shape->per_turn;
}

/* ---- made once --------------------------------------------------------------------------------------------------- */

static MatchProgram *compile(const char *where, unsigned number, const Plan *plan) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;
        MatchProgram *program = NULL;
        const char *place = strstr(where, "%u");
        char text[256];

        if (place)
                (void)snprintf(text, sizeof(text), "%.*s%u%s", (int)(place - where), where, number, place + 2);
        else
                (void)snprintf(text, sizeof(text), "%s", where);
        if (filter_parse(text, &filter, &e) != 0 || filter_compile(filter, plan, NULL, &program, &e) != 0)
                fail(e.text);
        return program;
}

static EncodePlan *encoding_of(const Pipeline *p, uint32_t event, unsigned i) {
        static char *const one_field[] = { (char *)"id" };
        static const Payload payloads[] = { PAYLOAD_FIELDS, PAYLOAD_RAW, PAYLOAD_BOTH, PAYLOAD_FIELDS };

        if (p->shape.n_encodings == 0)
                return need(encode_plan_new(p->plan, event, p->shape.payload, NULL, 0));
        return need(encode_plan_new(p->plan, event, payloads[i], one_field, i == 3));
}

static void drop_references(RouteTable *t) {
        for (size_t i = 0; i < t->n_routes; i++)
                match_program_unref((MatchProgram *)t->routes[i].program);
        for (size_t i = 0; i < t->n_encodings; i++)
                encode_plan_unref(t->encodings[i]);
}

static void snapshot_add_event(const Pipeline *p, Snapshot *s, uint32_t index) {
        unsigned n_encodings = or_one(p->shape.n_encodings);
        SnapshotEvent *e = &s->events[index];
        EventSpec spec = EVENT_SPEC_NULL;
        RouteTable *t;

        e->event = need(event_new(index + 1, &spec, p->plan, p->shape.n_cpus));
        e->layout = &p->layout;
        t = need(route_table_new(p->shape.n_subscriptions, n_encodings));
        t->deinit = drop_references;
        for (unsigned i = 0; i < n_encodings; i++)
                t->encodings[t->n_encodings++] = encoding_of(p, index + 1, i);
        for (unsigned i = 0; i < p->shape.n_subscriptions; i++) {
                if (p->shape.is_apart && i % or_one(p->shape.n_events) != index)
                        continue;
                t->routes[t->n_routes++] = (Route){ .number = p->shape.number + i, .encoding = i % n_encodings,
                                                    .program = match_program_ref(p->subscriptions[i].program) };
        }
        if (route_table_prepare(t, false) < 0)
                fail("no memory");
        snapshot_set_routes(e, t);
}

static Snapshot *pipeline_snapshot(Pipeline *p) {
        uint32_t n_events = or_one(p->shape.n_events);
        Snapshot *s = need(snapshot_new(1, p->shape.n_cpus, n_events));

        s->active = true;
        for (uint32_t i = 0; i < n_events; i++)
                snapshot_add_event(p, s, i);
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++) {
                SnapshotStream *streams = need(snapshot_streams_new(n_events));

                for (uint32_t i = 0; i < n_events; i++)
                        streams[i] = (SnapshotStream){ .id = stream_id(&p->shape, slot, i), .fd = -1, .record_layout = RECORD_LAYOUT_BASE, .event = i };
                if (snapshot_set_streams(s, slot, streams, n_events) < 0)
                        fail("no memory");
        }
        return s;
}

static void pipeline_init_readers(Pipeline *p) {
        size_t ring_size = p->shape.per_turn ? PIPELINE_RING / 16 : PIPELINE_RING; /* of many */
        Snapshot *snapshot = pipeline_snapshot(p);

        if (comm_table_init(&p->comms, 1024) < 0)
                fail("no memory");
        p->rings = need(calloc(p->shape.n_cpus, sizeof(*p->rings)));
        p->readers = need(aligned_alloc(64, p->shape.n_cpus * sizeof(*p->readers)));
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++) {
                Reader *r = memset(&p->readers[slot], 0, sizeof(*r));

                *r = (Reader){ .cpu = slot, .slot = slot, .clock = CLOCK_MONOTONIC, .carrier_fd = -1,
                               .carrier_id = CARRIER_ID, .comms = &p->comms, .dispatching = &p->dispatcher.dispatching,
                               .acknowledge_fd = -1, .overdue_fd = -1, .stall_fd = -1, .mailbox = MAILBOX_NULL };
                played_ring_init(&p->rings[slot], ring_size);
                if (ring_init_memory(&r->ring, p->rings[slot].page, ring_size) < 0 || reader_init(r, PIPELINE_POOL) < 0)
                        fail("no memory");
                r->snapshot = snapshot_ref(snapshot);
        }
        snapshot_unref(snapshot);
}

/* So that each thread is described once, as in a stream of the daemon. */
static void pipeline_name_threads(Pipeline *p) {
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++) {
                uint32_t tid = PLAYED_TID + slot;
                TaskNote workload = { .kind = TASK_NOTE_COMM, .pid = tid, .tid = tid, .text = "workload", .n_text = 8 };

                for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                        if (task_table_apply(&p->dispatcher.tasks[order], 1, &workload) < 0)
                                fail("no memory");
        }
}

static Subscriber *pipeline_subscribe(Pipeline *p, unsigned subscription, unsigned number, Peer *peer) {
        Subscriber *s = need(calloc(1, sizeof(*s)));

        peer_open(peer);
        *s = (Subscriber){ .id = number, .fd = peer->fd, .number = p->shape.number + subscription, .order = p->shape.order, .since = 1,
                           .overflow = OVERFLOW_DROP_OLDEST, .queue_bytes = (size_t)64 << 20 };
        peer->fd = -1; /* the dispatcher closes it */
        if (!p->shape.by_socket)
                s->ring = peer_share(peer, p->shape.n_subscriptions > BATCH_BITS ? PIPELINE_SHARED_OF_MANY : PIPELINE_SHARED, p->subscriptions[subscription].pool);
        if (dispatcher_subscribe(&p->dispatcher, s) < 0 || dispatcher_begin(&p->dispatcher, s->id) < 0)
                fail("no subscriber");
        return s;
}

static void pipeline_init_dispatcher(Pipeline *p) {
        unsigned n = or_one(p->shape.n_subscribers);

        p->dispatcher = (Dispatcher){ .clock = CLOCK_MONOTONIC, .mailbox = MAILBOX_NULL, .notices = MAILBOX_NULL,
                                      .dispatching = DISPATCHING_NULL };
        p->pipes = need(calloc(p->shape.n_cpus, sizeof(*p->pipes)));
        for (uint32_t slot = 0; slot < p->shape.n_cpus; slot++)
                p->pipes[slot] = reader_pipe(&p->readers[slot]);
        if (dispatcher_init(&p->dispatcher, p->pipes, p->shape.n_cpus, n * p->shape.n_subscriptions + 1) < 0)
                fail("no dispatcher");
        pipeline_name_threads(p);
        for (unsigned i = 0; i < p->shape.n_subscriptions; i++) {
                PlayedSubscription *u = &p->subscriptions[i];

                u->peers = need(calloc(n, sizeof(*u->peers)));
                u->subscribers = need(calloc(n, sizeof(*u->subscribers)));
                if (n > 1 && (buffer_pool_new(&u->pool) < 0 || buffer_pool_fill(u->pool) < 0))
                        fail("no pool");
                for (unsigned k = 0; k < n; k++)
                        u->subscribers[k] = pipeline_subscribe(p, i, i * n + k + 1, &u->peers[k]);
        }
}

void pipeline_init(Pipeline *p, const PipelineShape *shape) {
        memset(p, 0, sizeof(*p));
        p->shape = *shape;
        p->player = PLAYER_INIT;
        p->plan = format_file_plan(played_events[shape->event].format);
        p->subscriptions = need(calloc(shape->n_subscriptions + 1, sizeof(*p->subscriptions)));
        for (unsigned i = 0; shape->where && i < shape->n_subscriptions; i++)
                p->subscriptions[i].program = compile(shape->where, i, p->plan);
        if (sample_layout_init_type(&p->layout, SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) != 0)
                fail("no layout");
        pipeline_init_readers(p);
        pipeline_init_dispatcher(p);
}

void pipeline_deinit(Pipeline *p) {
        dispatcher_deinit(&p->dispatcher);
        for (unsigned i = 0; i < p->shape.n_subscriptions; i++) {
                for (unsigned k = 0; k < or_one(p->shape.n_subscribers); k++)
                        peer_close(&p->subscriptions[i].peers[k]);
                match_program_unref(p->subscriptions[i].program);
                buffer_pool_unref(p->subscriptions[i].pool);
                free(p->subscriptions[i].peers);
                free(p->subscriptions[i].subscribers);
        }
        for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                reader_deinit(&p->readers[i]);
                played_ring_deinit(&p->rings[i]);
        }
        free(p->subscriptions);
        free(p->readers);
        free(p->pipes);
        free(p->rings);
        comm_table_deinit(&p->comms);
        plan_unref(p->plan);
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* These three are what tests/bench/instructions counts by their names. */
__attribute__((noipa)) static bool pipeline_read(Pipeline *p, unsigned from, unsigned to) {
        bool starved = false;

        for (unsigned i = from; i < to; i++) {
                Reader *r = &p->readers[i];
                int error = reader_drain(r);

                if (error < 0)
                        fail("a reader failed");
                starved |= error == READER_E_STARVED; /* there is more: when its batches are back */
                if ((r->batch && r->batch->n_entries > 0) || (error == 0 && p->shape.order == STREAM_BY_TIME))
                        reader_push_batch(r); /* of a quiet CPU too: the merge has asked it how far it is */
        }
        return starved;
}

/* dispatcher_run_cycle() without its commands. */
__attribute__((noipa)) static void pipeline_dispatch(Pipeline *p) {
        Dispatcher *d = &p->dispatcher;

        d->in_cycle = true;
        if (dispatcher_empty_queues(d) < 0 || dispatcher_release(d) < 0 || dispatcher_flush(d) < 0 ||
            dispatcher_end_cycle(d) < 0)
                fail("the dispatcher failed");
}

/* The socket, or the ring, was full. */
__attribute__((noipa)) static void pipeline_send_rest(Pipeline *p, Subscriber *s) {
        const Outbox *o = &s->outbox;
        uint64_t sent = o->sent_items;
        size_t part = o->head_sent;

        if (subscriber_send(&p->dispatcher, s) < 0)
                fail("the dispatcher failed");
        if (o->sent_items == sent && o->head_sent == part)
                fail("whoever has room was given nothing");
}

static void pipeline_empty(Pipeline *p, Subscriber *s, Peer *peer) {
        peer_drain(peer);
        for (; !outbox_is_empty(&s->outbox); peer_drain(peer)) {
                stopwatch_start(&p->dispatching);
                pipeline_send_rest(p, s);
                stopwatch_stop(&p->dispatching);
        }
}

static bool pipeline_watch_read(Pipeline *p, unsigned from, unsigned to) {
        bool starved;

        stopwatch_start(&p->reading);
        starved = pipeline_read(p, from, to);
        stopwatch_stop(&p->reading);
        return starved;
}

static void pipeline_watch_dispatch(Pipeline *p) {
        stopwatch_start(&p->dispatching);
        pipeline_dispatch(p);
        stopwatch_stop(&p->dispatching);
}

static void pipeline_play(Pipeline *p) {
        bool starved;

        p->n_samples += pipeline_fill(p->rings, &p->shape, &p->player);
        do {
                starved = pipeline_watch_read(p, 0, p->shape.n_cpus);
                pipeline_watch_dispatch(p);
        } while (starved);
}

static void pipeline_play_at_rate(Pipeline *p) {
        for (unsigned from = 0, to; from < p->shape.n_cpus; from = to) {
                to = from + CPUS_TOGETHER < p->shape.n_cpus ? from + CPUS_TOGETHER : p->shape.n_cpus;
                for (unsigned i = from; i < to; i++)
                        p->n_samples += pipeline_fill_at_rate(p->rings, &p->shape, &p->player, i);
                if (pipeline_watch_read(p, from, to))
                        fail("a reader starves");
        }
        p->player.time += p->shape.per_turn * RATE_APART;
        pipeline_watch_dispatch(p);
}

void pipeline_turn(Pipeline *p) {
        if (p->shape.per_turn)
                pipeline_play_at_rate(p);
        else
                pipeline_play(p);
        for (unsigned i = 0; i < p->shape.n_subscriptions; i++)
                for (unsigned k = 0; k < or_one(p->shape.n_subscribers); k++)
                        pipeline_empty(p, p->subscriptions[i].subscribers[k], &p->subscriptions[i].peers[k]);
}

static void pipeline_check_subscriber(const Pipeline *p, const Subscriber *s, uint64_t delivered) {
        bool has_all = (!p->shape.where && !p->shape.is_apart) || p->shape.n_subscriptions == 1;

        if (s->outbox.sent_items != s->matched || s->late > 0 || (has_all && s->matched != delivered))
                fail("samples did not leave");
}

void pipeline_check(const Pipeline *p) {
        const Snapshot *snapshot = p->readers[0].snapshot;
        uint64_t delivered = 0, filtered = 0, read = 0;

        for (unsigned i = 0; i < p->shape.n_cpus; i++) {
                for (size_t k = 0; k < snapshot->n_events; k++) {
                        delivered += counter_get(&snapshot->events[k].event->counters[i].delivered);
                        filtered += counter_get(&snapshot->events[k].event->counters[i].filtered);
                }
                read += counter_get(&p->readers[i].counters.samples);
        }
        if (delivered + filtered != read || (p->shape.n_subscriptions > 0 && !p->shape.where && filtered > 0))
                fail("samples were lost");
        for (unsigned i = 0; i < p->shape.n_subscriptions; i++)
                for (unsigned k = 0; k < or_one(p->shape.n_subscribers); k++)
                        pipeline_check_subscriber(p, p->subscriptions[i].subscribers[k], delivered);
}
