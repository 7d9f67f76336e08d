/*
 * Real readers and the real dispatcher on played rings, taken apart into steps of one thread: wherever one of them looks at the
 * clock, or at where it runs, the others go on, samples begin and end, and the dispatcher is moved to another CPU; some of its
 * turns are taken by readers, and some CPUs seen to be idle. A sample has its time when it begins and its place in the ring when
 * it ends, however much later; but nothing of ours runs on a CPU in the middle of one, unless its CPU is somebody else's at that
 * moment. So a CPU whose host holds it back there for milliseconds is among what happens, and a dispatcher that sees a ring
 * empty, and is moved at once.
 *
 * Whatever happens: all that was written arrives, in order and none of it late, and then nobody waits for anybody.
 */
#include <errno.h>
#include <sys/socket.h>

#include "daemon/dispatcher/cycle.h"
#include "tests/unit/reader-checks.h"

#define CLOCK_OF_TEST CLOCK_BOOTTIME /* that of the samples; the monotonic one shows the same */
#define MAX_CPUS 3
#define MAX_OPEN 3 /* a program, its interrupt, the interrupt's */
#define TICK 1000

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_sched_getcpu(void);
void __wrap_idle_cpus_want(IdleCpus *i, uint32_t cpu);
int __wrap_idle_cpus_look(IdleCpus *i);
bool __wrap_idle_cpus_take(IdleCpus *i, uint32_t cpu);

typedef struct Cpu {
        Rig rig;
        nsec_t open[MAX_OPEN]; /* samples that have begun, the outermost first */
        unsigned n_open, n_inside; /* how many have ended inside of the outermost one */
        bool is_reading;
        uint32_t asks;
        uint64_t put;
} Cpu;

typedef struct World {
        Cpu cpus[MAX_CPUS];
        BatchPipe pipes[MAX_CPUS];
        unsigned n_cpus, busy; /* busy: the CPU where most happens */
        uint32_t extra;  /* longest raw bytes */
        unsigned interleaved;  /* of so many steps one is somewhere else */
        unsigned inside; /* most that end inside of one that is open: less than a pool holds */
        Dispatcher dispatcher;
        unsigned at; /* the dispatcher's CPU */
        bool in_turn, is_assist; /* on a reader's thread, which is not moved */
        bool is_wanted[MAX_CPUS], is_idle[MAX_CPUS]; /* to be looked at, and what was seen */
        Subscriber *subscriber;
        int peer;
        FrameReader in;
        uint64_t arrived;
        nsec_t last;
} World;

static World *world; /* NULL: clocks are real */
static nsec_t now;
static uint64_t seed;
static unsigned unrest; /* of 16 looks, how many let something happen */
static unsigned looks_taken, looks_around, held_long, n_assists;

static void world_read(World *w, unsigned cpu);
static void world_turn(World *w);
static void world_dispatch(World *w, unsigned cpu);

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

/* ---- what happens on CPUs ---------------------------------------------------------------------------------------- */

static void cpu_begin(Cpu *c) {
        c->open[c->n_open++] = now++;
}

static void cpu_end(const World *w, Cpu *c) {
        nsec_t time = c->open[--c->n_open];

        held_long += now - time > NSEC_PER_MSEC;
        c->n_inside = c->n_open > 0 ? c->n_inside + 1 : 0;
        if (rig_put_number(&c->rig, 1, WHO(7, 0, time), 3, 8 * random_below(w->extra / 8 + 1)))
                c->put++;
}

/* A thread is about to run there, or an interrupt is over. */
static void cpu_settle(const World *w, Cpu *c, unsigned n_open) {
        while (c->n_open > n_open)
                cpu_end(w, c);
}

static bool is_ours(const World *w, unsigned cpu) {
        return w->cpus[cpu].is_reading || (w->in_turn && w->at == cpu);
}

/* Something begins or ends; where a thread of ours runs it is an interrupt, which is over before that goes on. */
static void world_happen(World *w) {
        unsigned cpu = random_below(w->interleaved) ? w->busy : random_below(w->n_cpus);
        Cpu *c = &w->cpus[cpu];
        unsigned before = c->n_open;

        for (unsigned n = 1 + random_below(random_below(2) ? 20 : 2); n > 0; n--) /* also one that only begins, in an empty ring */
                if (c->n_open < MAX_OPEN && c->n_inside < w->inside && random_below(2))
                        cpu_begin(c);
                else if (c->n_open > (is_ours(w, cpu) ? before : 0))
                        cpu_end(w, c);
        if (is_ours(w, cpu))
                cpu_settle(w, c, before);
}

static void world_move(World *w) {
        w->at = random_below(w->n_cpus);
        cpu_settle(w, &w->cpus[w->at], 0);
}

/* Between two steps of whoever looked. */
static void world_go_on(World *w) {
        if (random_below(16) >= unrest)
                return;
        if (w->in_turn && !w->is_assist && random_below(2))
                world_move(w);
        for (unsigned n = random_below(4); n > 0; n--)
                world_happen(w);
        if (random_below(8) == 0)
                now += random_below(5 * NSEC_PER_MSEC);
        if (random_below(4) == 0)
                world_read(w, random_below(w->n_cpus));
        if (random_below(8) == 0)
                world_turn(w);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        if (!world || (clock != CLOCK_OF_TEST && clock != CLOCK_MONOTONIC))
                return __real_clock_gettime(clock, ts);
        world_go_on(world); /* between the last step and the look, and between the look and the next step */
        *ts = (struct timespec){ .tv_sec = (time_t)(now / NSEC_PER_SEC), .tv_nsec = (long)(now % NSEC_PER_SEC) };
        now++;
        world_go_on(world);
        return 0;
}

void __wrap_idle_cpus_want(IdleCpus *i, uint32_t cpu) {
        world->is_wanted[cpu] = true;
        world_go_on(world);
}

/* One that is busy with what concerns nobody is not idle either. A kernel that can no more is the end of it. */
int __wrap_idle_cpus_look(IdleCpus *i) {
        for (unsigned cpu = 0; cpu < world->n_cpus; cpu++) {
                world_go_on(world);
                world->is_idle[cpu] = world->is_wanted[cpu] && world->cpus[cpu].n_open == 0 && !is_ours(world, cpu) &&
                                      random_below(4) > 0;
                world->is_wanted[cpu] = false;
                world_go_on(world);
        }
        return random_below(1000) == 0 ? -EPROTO : 0;
}

bool __wrap_idle_cpus_take(IdleCpus *i, uint32_t cpu) {
        bool is_idle = world->is_idle[cpu];

        world->is_idle[cpu] = false;
        looks_around += is_idle;
        return is_idle;
}

int __wrap_sched_getcpu(void) {
        unsigned at = world->at;

        world_go_on(world); /* it may be somewhere else already */
        return (int)at;
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

/* As the loop in reader/reader.c does. */
static void world_read(World *w, unsigned cpu) {
        Cpu *c = &w->cpus[cpu];
        Reader *r = &c->rig.reader;
        int n;

        if (c->is_reading)
                return;
        cpu_settle(w, c, 0);
        c->is_reading = true;
        ring_view_set_quiet(&r->view, false);
        c->asks |= mailbox_take_asks(&r->mailbox);
        n = reader_drain(r);
        if (n == 0 && ((r->batch && r->batch->n_entries > 0) || c->asks & READER_ASK_WATERMARK || random_below(8) == 0))
                n = reader_push_batch(r);
        if (n == 0) {
                c->asks = 0;
                if (random_below(2))
                        world_dispatch(w, cpu);
        }
        ring_view_set_quiet(&r->view, n == 0 && (!r->batch || r->batch->n_entries == 0));
        c->is_reading = false;
}

/* What came over the socket. */
static void world_hear(World *w) {
        const uint8_t *message;
        size_t size, length;
        uint8_t *room;
        ssize_t n;

        for (;;) {
                assert_int_equal(frame_reader_room(&w->in, &room, &size), 0);
                n = recv(w->peer, room, size, MSG_DONTWAIT);
                if (n <= 0)
                        return;
                frame_reader_fed(&w->in, (size_t)n);
                while (frame_reader_next(&w->in, &message, &length) == 0) {
                        Perfd__V1__ServerMessage *m = perfd__v1__server_message__unpack(NULL, length, message);

                        assert_non_null(m);
                        for (size_t i = 0; i < m->packet->n_items; i++) {
                                assert_true(m->packet->items[i]->time >= w->last);
                                w->last = m->packet->items[i]->time;
                        }
                        w->arrived += m->packet->n_items;
                        perfd__v1__server_message__free_unpacked(m, NULL);
                }
        }
}

/* What is not written yet is not older than what is said of its CPU. */
static void check_watermarks(const World *w) {
        for (unsigned i = 0; i < w->n_cpus; i++)
                for (unsigned k = 0; k < w->cpus[i].n_open; k++)
                        assert_true(w->cpus[i].open[k] >= w->dispatcher.watermarks[i]);
}

/* As in dispatcher/cycle.c. */
static void world_work(World *w) {
        Dispatcher *d = &w->dispatcher;
        nsec_t before[MAX_CPUS];
        Batch *batches[64];
        size_t n = 0;

        for (unsigned i = 0; i < w->n_cpus; i++)
                for (Batch *b; n < 64 && (b = queue_pop(w->pipes[i].full));)
                        batches[n++] = b;
        world_go_on(w); /* commands are read */
        for (size_t i = 0; i < n; i++)
                assert_int_equal(dispatcher_take_batch(d, batches[i]), 0);
        for (unsigned i = 0; i < w->n_cpus; i++)
                before[i] = d->progress[i].seen;
        if (w->is_assist)
                d->here = d->n_pipes;
        else
                dispatcher_look_here(d);
        for (unsigned i = 0; i < w->n_cpus; i++)
                looks_taken += d->progress[i].seen != before[i];
        world_go_on(w);
        dispatcher_look_around(d);
        check_watermarks(w);
        assert_int_equal(dispatcher_release(d), 0);
        assert_int_equal(dispatcher_flush(d), 0);
        (void)dispatcher_ask(d);
        assert_int_equal(w->subscriber->late, 0);
        assert_int_equal(subscriber_send(d, w->subscriber), 0);
        world_hear(w);
}

static void world_turn(World *w) {
        if (w->in_turn)
                return;
        w->in_turn = true;
        world_move(w);
        world_work(w);
        w->in_turn = false;
}

/* By the reader of this CPU, behind its drain. */
static void world_dispatch(World *w, unsigned cpu) {
        if (w->in_turn)
                return;
        w->in_turn = w->is_assist = true;
        w->at = cpu;
        n_assists++;
        world_work(w);
        w->in_turn = w->is_assist = false;
}

static uint64_t world_missing(const World *w) {
        uint64_t n = 0;

        for (unsigned i = 0; i < w->n_cpus; i++)
                n += w->cpus[i].put;
        return n - w->arrived;
}

/* In peace all arrives soon, and then nobody waits. */
static void world_end(World *w) {
        unrest = 0;
        for (unsigned i = 0; i < w->n_cpus; i++)
                cpu_settle(w, &w->cpus[i], 0);
        for (unsigned idle = 0; world_missing(w) > 0; idle++) {
                uint64_t before = world_missing(w);

                for (unsigned i = 0; i < w->n_cpus; i++)
                        world_read(w, i);
                world_turn(w);
                now += 2 * TICK;
                idle = world_missing(w) < before ? 0 : idle;
                assert_true(idle < 8);
        }
        assert_int_equal(w->dispatcher.merge.n, 0);
        assert_true(dispatcher_ask(&w->dispatcher) == UINT64_MAX);
}

/* ---- a whole one ------------------------------------------------------------------------------------------------- */

static void world_init(World *w, unsigned round, size_t ring_size, uint32_t extra, unsigned inside) {
        Subscriber *s = calloc(1, sizeof(*s));
        unsigned n_batches = 2 + round % 4;
        int fds[2];

        *w = (World){ .n_cpus = 1 + round % MAX_CPUS, .extra = extra, .inside = inside };
        for (unsigned i = 0; i < w->n_cpus; i++) {
                Reader *r = &w->cpus[i].rig.reader;

                rig_init(&w->cpus[i].rig, ring_size, n_batches);
                r->clock = CLOCK_OF_TEST;
                r->cpu = i;
                for (unsigned n = n_batches; n > 0; n--) {
                        Batch *b = queue_pop(&r->free);

                        b->slot = i; /* whose it is */
                        queue_push(&r->free, b);
                }
                ring_view_open(&r->view, &r->ring);
                w->pipes[i] = reader_pipe(r);
        }
        w->dispatcher = (Dispatcher){ .clock = CLOCK_OF_TEST };
        w->dispatcher.idle = round % 2 ? (IdleCpus *)w : NULL; /* is never looked into */
        assert_int_equal(dispatcher_init(&w->dispatcher, w->pipes, w->n_cpus, 1), 0);
        atomic_store(&w->dispatcher.dispatching.tick, TICK);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        w->peer = fds[1];
        frame_reader_init(&w->in, FRAME_MAX_SERVER);
        *s = (Subscriber){ .id = 1, .fd = fds[0], .order = STREAM_BY_TIME, .since = 1, .queue_bytes = 1 << 30 };
        w->subscriber = s;
        assert_int_equal(dispatcher_subscribe(&w->dispatcher, s), 0);
        assert_int_equal(dispatcher_begin(&w->dispatcher, 1), 0);
}

static void world_deinit(World *w) {
        world = NULL;
        for (unsigned i = 0; i < w->n_cpus; i++)
                rig_check_sums(&w->cpus[i].rig);
        dispatcher_deinit(&w->dispatcher);
        for (unsigned i = 0; i < w->n_cpus; i++)
                rig_deinit(&w->cpus[i].rig);
        frame_reader_deinit(&w->in);
        close_fd(w->peer);
}

static void world_run(unsigned round, size_t ring_size, uint32_t extra, unsigned inside, unsigned turns) {
        static World w;

        seed = round + 1000;
        now = NSEC_PER_SEC + random_below(1 << 20);
        world_init(&w, round, ring_size, extra, inside);
        world = &w;
        unrest = 1 + round % 16;
        w.interleaved = 2 << round % 4;
        for (unsigned turn = 0; turn < turns; turn++)
                switch (random_below(5)) {
                case 0:
                        for (unsigned n = random_below(20 << round % 5); n > 0; n--)
                                world_happen(&w);
                        break;
                case 1:
                        world_turn(&w);
                        break;
                case 2:
                        w.busy = random_below(4) ? w.busy : random_below(w.n_cpus);
                        break;
                default:
                        world_read(&w, random_below(w.n_cpus));
                }
        world_end(&w);
        world_deinit(&w);
}

static void test_short_samples(void **state) {
        looks_taken = looks_around = held_long = n_assists = 0;
        for (unsigned round = 0; round < 200; round++)
                world_run(round, (size_t)64 * 1024 << round % 5, 8 * (round % 20), 100, 300);
        assert_true(looks_taken > 100 && looks_around > 100 && held_long > 1000 && n_assists > 1000);
}

/* Of up to 7 KiB: a few fill a batch, and readers wait for free ones. */
static void test_long_samples(void **state) {
        looks_taken = looks_around = held_long = n_assists = 0;
        for (unsigned round = 0; round < 200; round++)
                world_run(round, (size_t)128 * 1024 << round % 3, 7 * 1024, 3, 200);
        assert_true(looks_taken > 10 && looks_around > 10 && held_long > 1000 && n_assists > 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_short_samples),
                cmocka_unit_test(test_long_samples),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
