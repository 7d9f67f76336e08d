/*
 * The CPUs. Each that can be there has a slot for ever, so that counters and the ledger know it also while it is away;
 * carrier, ring and reader are there as long as it is online.
 *
 * A reader, and no other thread, may drain a ring that is written to. So a CPU that goes is read to its end by its own
 * reader, which the kernel has moved to another CPU: nothing is written any more by then.
 */
#include "daemon/supervisor.h"

#include <string.h>
#include <sys/eventfd.h>

#include "daemon/base/log.h"
#include "daemon/kernel/hotplug.h"
#include "daemon/kernel/open.h"
#include "daemon/kernel/tasks.h"

#define COMMS 65536
#define FLUSH (2 * NSEC_PER_MSEC) /* how long a sample may lie in a busy ring, and the merge waits for a CPU */

size_t supervisor_count_online(const Supervisor *s) {
        size_t n = 0;

        for (size_t slot = 0; slot < s->n_cpus; slot++)
                n += s->online[slot];
        return n;
}

int supervisor_explain_thread(int r, Explanation *e) {
        return refuse(e, REFUSED_EXHAUSTED, "kernel",
                      "a thread can not be started: %s; perfd has one for each CPU and a few more: raise TasksMax= "
                      "(RLIMIT_NPROC) or the memory that it may use", strerror(-r));
}

/* ---- one CPU: its carrier, ring and batches ---------------------------------------------------------------------- */

/* Side records that this kernel does not know are done without. */
static int open_carrier(Supervisor *s, uint32_t slot, uint64_t *ret_read_format, Explanation *e) {
        struct perf_event_attr attr = attr_of_carrier(&s->attr);
        OpenPlace place = { .pid = -1, .cpu = (int)s->cpus[slot], .leader_fd = -1 };
        int r = open_event(&attr, "a ring's carrier", place, &s->carriers[slot], e);

        if (r == REFUSED_UNSUPPORTED) {
                attr = attr_of_plain_carrier(&s->attr);
                r = open_event(&attr, "a ring's carrier", place, &s->carriers[slot], e);
        }
        if (r == 0)
                *ret_read_format = attr.read_format;
        return r;
}

/* The reader's own parts are there already, or are made: a CPU that comes back finds those that it had. */
static int open_ring(Supervisor *s, uint32_t slot, Explanation *e) {
        Reader *reader = &s->readers[slot];
        int r = open_carrier(s, slot, &reader->carrier_read_format, e);

        if (r == OPEN_E_OFFLINE)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel", "CPU %u went offline while its ring was opened",
                              s->cpus[slot]);
        if (r != 0)
                return r;
        reader->carrier_fd = s->carriers[slot];
        r = ring_open(&reader->ring, s->carriers[slot], s->config->ring_size);
        if (r < 0)
                return open_explain_mmap(r, s->config->ring_size, (int)s->cpus[slot], e);
        r = open_id(s->carriers[slot], &reader->carrier_id, e);
        if (r == 0)
                r = supervisor_open_moves(s, slot);
        if (r == 0 && !reader->mailbox.mails.slots)
                r = reader_init(reader, s->config->batch_pool);
        return r;
}

static void close_ring(Supervisor *s, uint32_t slot) {
        ring_close(&s->readers[slot].ring);
        supervisor_close_moves(s, slot);
        s->carriers[slot] = close_fd(s->carriers[slot]);
}

/* What is on while something is traced: the carrier, and who moves between cgroups. At most two. */
static size_t list_carrier(const Supervisor *s, uint32_t slot, Stream *to) {
        to[0] = (Stream){ .slot = slot, .fd = s->carriers[slot] };
        if (s->moves.fds[slot] < 0)
                return 1;
        to[1] = (Stream){ .slot = slot, .fd = s->moves.fds[slot] };
        return 2;
}

static void list_carriers(Supervisor *s) {
        s->carrier_streams.n = 0;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (s->online[slot])
                        s->carrier_streams.n += list_carrier(s, slot, &s->carrier_streams.streams[s->carrier_streams.n]);
}

static int start_reader(Supervisor *s, uint32_t slot, Explanation *e) {
        Snapshot *empty = snapshot_new(0, (uint32_t)s->n_cpus, 0);
        int r;

        if (!empty)
                return -ENOMEM;
        r = reader_start(&s->readers[slot], empty);
        if (r == -EINVAL)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "perfd may not run on CPU %u, whose ring only a thread there can read in order: let it run on "
                              "all online CPUs (CPUAffinity=, cpusets)", s->cpus[slot]);
        return r < 0 ? supervisor_explain_thread(r, e) : 0;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static int find_cpus(Supervisor *s, Explanation *e) {
        _cleanup_free_ uint32_t *online = NULL;
        size_t n_online = 0;
        int r;

        r = cpus_possible(&s->cpus, &s->n_cpus, e);
        if (r == 0)
                r = cpus_online(&online, &n_online, e);
        if (r != 0)
                return r;
        s->online = calloc(s->n_cpus, sizeof(*s->online));
        if (!s->online)
                return -ENOMEM;
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                for (size_t i = 0; i < n_online; i++)
                        s->online[slot] |= s->cpus[slot] == online[i];
        return 0;
}

static int make_slots(Supervisor *s) {
        size_t n = s->n_cpus;

        s->readers = aligned_alloc(64, n * sizeof(*s->readers));
        s->carriers = malloc(n * sizeof(*s->carriers));
        s->lanes = calloc(n + 1, sizeof(*s->lanes));
        s->carrier_streams.streams = calloc(2 * n, sizeof(Stream));
        if (!s->readers || !s->carriers || !s->lanes || !s->carrier_streams.streams)
                return -ENOMEM;
        memset(s->readers, 0, n * sizeof(*s->readers));
        for (uint32_t slot = 0; slot < n; slot++) {
                s->carriers[slot] = -1;
                s->readers[slot] = (Reader){ .cpu = s->cpus[slot], .slot = slot, .clock = s->attr.clock,
                                             .own_pid = (uint32_t)getpid(), .flush = FLUSH, .comms = &s->comms,
                                             .dispatcher = &s->dispatcher.doorbell,
                                             .acknowledge_fd = s->acknowledge_fd, .ring = RING_NULL,
                                             .mailbox = MAILBOX_NULL };
                s->lanes[slot] = reader_lane(&s->readers[slot]);
        }
        s->lanes[n] = own_lane(&s->own);
        return own_lane_init(&s->own);
}

int supervisor_start_cpus(Supervisor *s, Explanation *e) {
        int r;

        s->acknowledge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->acknowledge_fd < 0)
                return -errno;
        r = comm_table_init(&s->comms, COMMS);
        if (r == 0)
                r = find_cpus(s, e);
        if (r == 0)
                r = make_slots(s);
        if (r == 0)
                r = supervisor_find_moves(s);
        if (r != 0)
                return r;
        s->dispatcher = (Dispatcher){ .clock = s->attr.clock, .patience = FLUSH };
        r = dispatcher_init(&s->dispatcher, s->lanes, (uint32_t)s->n_cpus + 1, s->config->subscribers_max);
        if (r == 0)
                dispatcher_set_lane(&s->dispatcher, (uint32_t)s->n_cpus, true, false);
        for (uint32_t slot = 0; slot < s->n_cpus && r == 0; slot++) {
                if (s->online[slot])
                        r = open_ring(s, slot, e);
                else
                        dispatcher_set_lane(&s->dispatcher, slot, false, false);
        }
        list_carriers(s);
        return r;
}

int supervisor_start_readers(Supervisor *s, Explanation *e) {
        int r = 0;

        for (uint32_t slot = 0; slot < s->n_cpus && r == 0; slot++)
                if (s->online[slot])
                        r = start_reader(s, slot, e);
        return r;
}

void supervisor_stop_readers(Supervisor *s) {
        bool any = false;

        for (size_t slot = 0; s->readers && slot < s->n_cpus; slot++)
                any |= s->readers[slot].thread.started;
        if (any && supervisor_order(s, READER_STOP, NULL) < 0)
                abort(); /* no memory for a mail: the threads can not be told */
        for (size_t slot = 0; s->readers && slot < s->n_cpus; slot++)
                (void)reader_join(&s->readers[slot]); /* a reader that fails ends the process itself */
}

void supervisor_free_cpus(Supervisor *s) {
        for (size_t i = 0; s->readers && s->carriers && i < s->n_cpus; i++) {
                reader_deinit(&s->readers[i]);
                close_fd(s->carriers[i]);
        }
        close_fd(s->hotplug_fd);
        own_lane_deinit(&s->own);
        free(s->readers);
        free(s->lanes);
        free(s->carriers);
        free(s->carrier_streams.streams);
        supervisor_free_moves(s);
        free(s->online);
        free(s->cpus);
        close_fd(s->acknowledge_fd);
}

/* ---- CPUs that come and go --------------------------------------------------------------------------------------- */

/* Waits until the dispatcher serves the lane, or does not any more. */
static int tell_dispatcher(Supervisor *s, DispatcherOrder order, uint32_t slot) {
        DispatcherMail *mail = calloc(1, sizeof(*mail));
        sem_t done;

        if (!mail)
                return -ENOMEM;
        sem_init(&done, 0, 0);
        *mail = (DispatcherMail){ .order = order, .slot = slot, .at = clock_now(s->attr.clock), .done = &done };
        dispatcher_post(&s->dispatcher, mail);
        supervisor_wait_for_dispatcher(&done);
        sem_destroy(&done);
        return 0;
}

/* The last drain, and the end of the thread. The others are told something that changes nothing. */
static int stop_reader(Supervisor *s, uint32_t slot) {
        _cleanup_free_ ReaderMail *each = calloc(s->n_cpus, sizeof(*each));
        int r;

        if (!each)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->n_cpus; i++)
                each[i].order = i == slot ? READER_STOP : READER_SWITCH;
        r = supervisor_order_each(s, each);
        if (r == 0)
                (void)reader_join(&s->readers[slot]);
        return r;
}

static bool is_of_slot(const Registration *g, const Stream *stream, const void *userdata) {
        return stream->slot == *(const uint32_t *)userdata;
}

/* What a cut would find now that nothing moves: all counts are in what closed fds have counted. */
static void settle_slot(Supervisor *s, uint32_t slot) {
        RingCounters *ring = &s->readers[slot].counters;
        ReadCount carrier;

        for (Registration *g = s->registrations; g; g = g->next) {
                EventCounters *c = &g->event->counters[slot];

                c->cut = (EventCut){ .delivered = counter_get(&c->delivered), .filtered = counter_get(&c->filtered),
                                     .doubled = counter_get(&c->doubled), .settled = true };
                for (int i = 0; i < _LOSS_MAX; i++)
                        c->cut.lost[i] = counter_get(&c->lost[i]);
                c->next_read = 0;
        }
        if (open_read(s->carriers[slot], s->readers[slot].carrier_read_format, &carrier) == 0)
                ring->closed_side_lost += carrier.lost;
        ring->cut_side_lost = ring->closed_side_lost;
        ring->cut_records = counter_get(&ring->records);
        ring->cut_samples = counter_get(&ring->samples);
        ring->cut_side_records = counter_get(&ring->side_records);
        ring->cut_unknown_id = counter_get(&ring->unknown_id);
        ring->cut_undecodable = counter_get(&ring->undecodable);
}

static int cpu_gone(Supervisor *s, uint32_t slot) {
        int r;

        log_print(LOG_NOTICE, "CPU %u went offline", s->cpus[slot]);
        r = stop_reader(s, slot);
        if (r == 0)
                r = tell_dispatcher(s, DISPATCHER_LANE_OFF, slot);
        if (r < 0)
                return r;
        s->online[slot] = false;
        list_carriers(s);
        r = supervisor_retract(s, is_of_slot, &slot);
        settle_slot(s, slot);
        close_ring(s, slot);
        reader_renew(&s->readers[slot]);
        return r;
}

/* One event on a CPU that came. That it can not be counted there is said, and is no reason to do without the others. */
static int extend_event(Supervisor *s, Registration *g, uint32_t slot) {
        _cleanup_(whoms_deinit) Whoms whoms = WHOMS_NULL;
        _cleanup_free_ uint32_t *slots = NULL;
        Explanation e = EXPLANATION_NULL;
        Opened more = OPENED_NULL;
        size_t n_slots = 0;
        bool wanted = false;
        int r;

        if (g->event->external)
                return 0;
        r = supervisor_find_slots(s, g, &slots, &n_slots, &e);
        for (size_t i = 0; r == 0 && i < n_slots; i++)
                wanted |= slots[i] == slot;
        if (r == 0 && wanted)
                r = supervisor_find_whoms(s, &g->event->spec, &whoms, &e);
        if (r == 0 && wanted)
                r = supervisor_open_at(s, g, g->event->spec.filter, &whoms, &slot, 1, &more, &e);
        if (r == 0 && more.n > 0)
                r = supervisor_extend(s, g, &more, &e);
        opened_close(s, &more);
        if (r > 0)
                log_print(LOG_WARNING, "%s is not counted on CPU %u: %s", g->event->spec.name, s->cpus[slot], e.text);
        return r < 0 ? r : 0;
}

static int cpu_came(Supervisor *s, uint32_t slot) {
        Stream streams[2];
        Opened carrier = { .streams = streams };
        Explanation e = EXPLANATION_NULL;
        int r;

        log_print(LOG_NOTICE, "CPU %u came online", s->cpus[slot]);
        r = open_ring(s, slot, &e);
        if (r == 0)
                r = start_reader(s, slot, &e);
        if (r != 0) {
                close_ring(s, slot);
                if (r > 0)
                        log_print(LOG_WARNING, "CPU %u is not observed: %s", s->cpus[slot], e.text);
                return r < 0 ? r : 0;
        }
        s->online[slot] = true;
        list_carriers(s);
        r = tell_dispatcher(s, DISPATCHER_LANE_ON, slot);
        if (r == 0)
                r = supervisor_publish(s);
        carrier.n = list_carrier(s, slot, streams);
        if (r == 0 && s->active)
                r = opened_enable(s, (const Opened *const[]){ &carrier }, 1, "the ring's carrier", &e);
        if (r > 0) {
                log_print(LOG_WARNING, "CPU %u has no side records: %s", s->cpus[slot], e.text);
                r = 0;
        }
        s->knows_tasks = false; /* who has run there meanwhile was not noticed */
        if (r == 0 && s->wants_tasks)
                r = supervisor_learn_tasks(s);
        for (Registration *g = s->registrations; g && r == 0; g = g->next)
                r = extend_event(s, g, slot);
        return r;
}

/* As it is now, whatever was said before: a CPU may have gone and come while the words were on their way. */
static int compare_cpus(Supervisor *s) {
        _cleanup_free_ uint32_t *online = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t n = 0;
        int r = cpus_online(&online, &n, &e);

        if (r > 0)
                log_print(LOG_WARNING, "the online CPUs are not known: %s", e.text);
        for (uint32_t slot = 0; slot < s->n_cpus && r == 0; slot++) {
                bool is_online = false;

                for (size_t i = 0; i < n; i++)
                        is_online |= online[i] == s->cpus[slot];
                if (s->online[slot] && !is_online)
                        r = cpu_gone(s, slot);
                else if (!s->online[slot] && is_online)
                        r = cpu_came(s, slot);
        }
        return r < 0 ? r : 0;
}

static uint32_t slot_of_cpu(const Supervisor *s, uint32_t cpu) {
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (s->cpus[slot] == cpu)
                        return slot;
        return UINT32_MAX;
}

/* A CPU that went and is back already lost its events meanwhile: the words count, not only how it is now. */
static int on_hotplug(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Supervisor *s = userdata;
        bool online;
        uint32_t cpu, slot;
        int r;

        while ((r = hotplug_next(fd, &cpu, &online)) == 0) {
                slot = slot_of_cpu(s, cpu);
                if (slot != UINT32_MAX && !online && s->online[slot] && (r = cpu_gone(s, slot)) < 0)
                        return r;
        }
        return r < 0 ? r : compare_cpus(s);
}

int supervisor_follow_cpus(Supervisor *s) {
        int r = hotplug_open(&s->hotplug_fd);

        if (r < 0) {
                log_print(LOG_NOTICE, "the kernel does not tell of CPUs that come or go, so they are not followed: %s",
                          strerror(-r));
                return 0;
        }
        r = sd_event_add_io(s->event, NULL, s->hotplug_fd, EPOLLIN, on_hotplug, s);
        return r < 0 ? r : 0;
}
