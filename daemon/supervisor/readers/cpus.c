/*
 * The CPUs. Each that can be there has a slot for ever, so that counters and the ledger know it also while it is away;
 * carrier, ring and reader are there as long as it is online (supervisor/changes/hotplug.c).
 */

#include <string.h>
#include <sys/eventfd.h>

#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/event/ring-limits.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/readers/emit-pipe.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/readers.h"
#include "daemon/supervisor/readers/stall.h"
#include "daemon/supervisor/readers/tasks.h"

#define COMMS 65536
#define PROCESS_TREE_TASKS 65536
#define END_MOST (5 * NSEC_PER_SEC) /* for a thread that has nothing to do any more */

size_t readers_count_online(const Readers *s) {
        size_t n = 0;

        for (size_t slot = 0; slot < s->n_cpus; slot++)
                n += s->online[slot];
        return n;
}

int readers_explain_thread(int r, Explanation *e) {
        return refuse(e, REFUSED_EXHAUSTED, "kernel",
                      "a thread cannot be started: %s; perfd needs one for each CPU and a few more: raise TasksMax= "
                      "(RLIMIT_NPROC), or its memory limit", strerror(-r));
}

/* ---- one CPU: its carrier, ring and batches ---------------------------------------------------------------------- */

int readers_open_carrier(Readers *s, uint32_t slot, int *ret_fd, uint64_t *ret_read_format, Explanation *e) {
        struct perf_event_attr attr = attr_of_carrier(&s->attr);
        OpenPlace place = { .pid = -1, .cpu = (int)s->cpus[slot], .leader_fd = -1 };
        int r = open_event(&attr, "a ring's carrier", place, ret_fd, e);

        if (r == REFUSED_UNSUPPORTED) {
                attr = attr_of_plain_carrier(&s->attr);
                r = open_event(&attr, "a ring's carrier", place, ret_fd, e);
        }
        if (r == 0)
                *ret_read_format = attr.read_format;
        return r;
}

int readers_open_ring(Readers *s, uint32_t slot, Explanation *e) {
        Reader *reader = &s->by_slot[slot];
        int r = readers_open_carrier(s, slot, &s->carriers[slot], &reader->carrier_read_format, e);

        if (r == OPEN_E_OFFLINE)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel", "CPU %u went offline while its ring buffer was opened",
                              s->cpus[slot]);
        if (r != 0)
                return r;
        reader->carrier_fd = s->carriers[slot];
        r = ring_open(&reader->ring, s->carriers[slot], s->settings->config->ring_size);
        if (r < 0)
                return open_explain_mmap(r, s->settings->config->ring_size, (int)s->cpus[slot], e);
        r = open_id(s->carriers[slot], &reader->carrier_id, e);
        if (r == 0)
                r = readers_open_migrations(s, slot, e);
        if (r != 0)
                return r;
        if (!reader->mailbox.messages.slots)
                return error_trace_of(reader_init(reader, s->settings->started_with->batch_pool), "CPU %u", s->cpus[slot]);
        free(reader->backlog.least); /* rings may have got another size since this CPU was there */
        return error_trace_of(reader_init_backlog(reader), "CPU %u", s->cpus[slot]);
}

void readers_close_ring(Readers *s, uint32_t slot) {
        ring_close(&s->by_slot[slot].ring);
        readers_close_migrations(s, slot);
        s->carriers[slot] = close_fd(s->carriers[slot]);
}

size_t readers_list_carrier(const Readers *s, uint32_t slot, PerfFd *to) {
        to[0] = (PerfFd){ .slot = slot, .fd = s->carriers[slot] };
        if (s->migrations.fds[slot] < 0)
                return 1;
        to[1] = (PerfFd){ .slot = slot, .fd = s->migrations.fds[slot] };
        return 2;
}

void readers_list_carriers(Readers *s) {
        s->carrier_fds.n = 0;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++)
                if (s->online[slot])
                        s->carrier_fds.n += readers_list_carrier(s, slot, &s->carrier_fds.fds[s->carrier_fds.n]);
}

int readers_start_one(Readers *s, uint32_t slot, Explanation *e) {
        Snapshot *empty = snapshot_new(0, (uint32_t)s->n_cpus, 0);
        int r;

        if (!empty)
                return error_origin(-ENOMEM);
        s->by_slot[slot].cut = s->n_cuts;
        r = reader_start(&s->by_slot[slot], empty);
        if (r == -EINVAL)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "perfd may not run on %s CPU %u: allow it (CPUAffinity=, cpusets), or restrict readers to other "
                              "CPUs by readers.cpus", s->by_slot[slot].guard ? "the CPUs of readers.cpus, as it must for"
                                                                             : "all CPUs; not on", s->cpus[slot]);
        return r < 0 ? readers_explain_thread(r, e) : 0;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static int find_cpus(Readers *s, Explanation *e) {
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
                return error_origin(-ENOMEM);
        for (size_t slot = 0; slot < s->n_cpus; slot++)
                for (size_t i = 0; i < n_online; i++)
                        s->online[slot] |= s->cpus[slot] == online[i];
        return 0;
}

static int make_slots(Readers *s) {
        size_t n = s->n_cpus;

        s->by_slot = aligned_alloc(64, n * sizeof(*s->by_slot));
        s->carriers = malloc(n * sizeof(*s->carriers));
        s->pipes = calloc(n + 1, sizeof(*s->pipes));
        s->carrier_fds.fds = calloc(2 * n, sizeof(PerfFd));
        if (!s->by_slot || !s->carriers || !s->pipes || !s->carrier_fds.fds)
                return error_origin(-ENOMEM);
        memset(s->by_slot, 0, n * sizeof(*s->by_slot));
        for (uint32_t slot = 0; slot < n; slot++) {
                s->carriers[slot] = -1;
                s->by_slot[slot] = (Reader){ .cpu = s->cpus[slot], .slot = slot, .clock = s->attr.clock,
                                             .own_pid = (uint32_t)getpid(), .has_no_pids = s->host->is_in_pid_namespace,
                                             .base_tick = READER_TICK, .comms = &s->comms, .process_tree = &s->process_tree,
                                             .dispatching = &s->dispatcher.dispatching, .losses = s->loss_bell,
                                             .acknowledge_fd = s->acknowledge_fd, .ring = RING_NULL,
                                             .mailbox = MAILBOX_NULL, .overdue_fd = -1, .stall_fd = -1 };
                s->pipes[slot] = reader_pipe(&s->by_slot[slot]);
        }
        s->pipes[n] = emit_pipe(&s->emit_pipe);
        return emit_pipe_init(&s->emit_pipe);
}

int readers_start_cpus(Readers *s, Explanation *e) {
        int r;

        s->host->is_in_pid_namespace = !tasks_in_root_namespace();
        s->uid_socket = -1;
        s->acknowledge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->acknowledge_fd < 0)
                return error_origin(-errno);
        r = comm_table_init(&s->comms, COMMS);
        if (r == 0)
                r = process_tree_init(&s->process_tree, PROCESS_TREE_TASKS);
        if (r == 0)
                r = find_cpus(s, e);
        if (r == 0)
                r = ring_limits_check(readers_count_online(s), s->settings->config->ring_size, e);
        if (r == 0)
                r = make_slots(s);
        if (r == 0)
                r = readers_find_migrations(s);
        if (r != 0)
                return r;
        readers_find_uids(s);
        s->dispatcher = (Dispatcher){ .clock = s->attr.clock, .losses = s->loss_bell,
                                       .confirms_cgroups = s->host->is_in_pid_namespace, .reads_proc = tasks_has_own_proc(),
                                       .uid_socket = s->uid_socket >= 0 ? &s->uid_socket : NULL,
                                       .wall_source = &wall_source_host, .wall_fd = -1, .cgroups = s->host->cgroups.path };
        s->subscribers_max = s->settings->config->subscribers_max;
        r = readers_place_threads(s, e);
        if (r != 0)
                return r;
        r = dispatcher_init(&s->dispatcher, s->pipes, (uint32_t)s->n_cpus + 1, s->subscribers_max);
        if (r == 0)
                dispatcher_set_pipe(&s->dispatcher, (uint32_t)s->n_cpus, true, false);
        for (uint32_t slot = 0; slot < s->n_cpus && r == 0; slot++) {
                if (s->online[slot])
                        r = readers_open_ring(s, slot, e);
                else
                        dispatcher_set_pipe(&s->dispatcher, slot, false, false);
        }
        readers_list_carriers(s);
        return r;
}

int readers_start(Readers *s, Explanation *e) {
        int r = 0;

        for (uint32_t slot = 0; slot < s->n_cpus && r == 0; slot++)
                if (s->online[slot])
                        r = readers_start_one(s, slot, e);
        return r;
}

void readers_stop(Readers *s) {
        bool any = false;

        for (size_t slot = 0; s->by_slot && slot < s->n_cpus; slot++)
                any |= s->by_slot[slot].thread.started;
        if (any && readers_command(s, READER_STOP, NULL) < 0)
                abort(); /* no memory for a command: the threads cannot be told */
        for (uint32_t slot = 0; any && slot < s->n_cpus; slot++) {
                if (reader_is_stalled(&s->answering.readers[slot]))
                        continue; /* it may never end: supervisor_stop() */
                if (!reader_join_within(&s->by_slot[slot], END_MOST)) /* a reader that fails ends the process itself */
                        readers_set_stalled(s, slot); /* what it was asked its backup has done */
        }
}

void readers_free_cpus(Readers *s) {
        for (size_t i = 0; s->by_slot && s->carriers && i < s->n_cpus; i++) {
                reader_deinit(&s->by_slot[i]);
                close_fd(s->carriers[i]);
        }
        emit_pipe_deinit(&s->emit_pipe);
        free(s->by_slot);
        free(s->pipes);
        free(s->carriers);
        free(s->carrier_fds.fds);
        readers_free_migrations(s);
        readers_free_places(s);
        free(s->online);
        free(s->cpus);
        close_fd(s->uid_socket);
        close_fd(s->acknowledge_fd);
}
