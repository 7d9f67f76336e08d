#include "tests/unit/supervisor-rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/kernel/task/tasks.h"
#include "daemon/reader/cycle.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/subscriptions/subscription.h"

#define RING_SIZE ((size_t)16 * 1024)

/* ---- CPUs and their readers -------------------------------------------------------------------------------------- */

int __wrap_cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
int __wrap_cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        *ret_cpus = malloc(RIG_CPUS * sizeof(**ret_cpus));
        assert_non_null(*ret_cpus);
        for (uint32_t i = 0; i < RIG_CPUS; i++)
                (*ret_cpus)[i] = 4 + i;
        *ret_n = RIG_CPUS;
        return 0;
}

int __wrap_cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
int __wrap_cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        return __wrap_cpus_possible(ret_cpus, ret_n, e);
}

int __wrap_reader_start(Reader *r, Snapshot *snapshot);
int __wrap_reader_start(Reader *r, Snapshot *snapshot) {
        r->snapshot = snapshot;
        r->thread.started = true; /* as far as main knows */
        return 0;
}

/* What its thread would do, and the dispatcher. */
void __real_reader_post(Reader *r, ReaderCommand *mail);
void __wrap_reader_post(Reader *r, ReaderCommand *mail);
void __wrap_reader_post(Reader *r, ReaderCommand *mail) {
        const uint64_t sequence = mail->sequence;
        bool is_starved;
        Batch *b;

        played_enter_reader(true);
        __real_reader_post(r, mail);
        assert_int_equal(reader_read(r, &is_starved), 0);
        assert_false(is_starved);
        assert_int_equal(r->acknowledged, sequence);
        while ((b = queue_pop(&r->full)))
                assert_true(queue_push(&r->free, b));
        played_enter_reader(false);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void make_path(const Rig *rig, const char *name, char path[128]) {
        (void)snprintf(path, 128, "%s/%s", rig->folder, name);
}

static const char *const folders[] = { "events", "events/irq", "events/irq/softirq_entry" };

static void make_tracefs(Rig *rig) {
        char path[128];

        strcpy(rig->folder, "/tmp/test-supervisor.XXXXXX");
        assert_non_null(mkdtemp(rig->folder));
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                make_path(rig, folders[i], path);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        make_path(rig, "events/irq/softirq_entry/format", path);
        assert_int_equal(symlink(FORMATS "/irq.softirq_entry", path), 0);
        assert_int_equal(tracing_open(&rig->supervisor.host.tracing, rig->folder, &rig->e), 0);
}

static void remove_tracefs(Rig *rig) {
        char path[128];

        tracing_close(&rig->supervisor.host.tracing);
        make_path(rig, "events/irq/softirq_entry/format", path);
        assert_int_equal(unlink(path), 0);
        for (size_t i = ARRAY_SIZE(folders); i-- > 0;) {
                make_path(rig, folders[i], path);
                assert_int_equal(rmdir(path), 0);
        }
        assert_int_equal(rmdir(rig->folder), 0);
}

static void make_settings(Settings *s) {
        s->config = config_default();
        assert_non_null(s->config);
        s->config->ring_size = RING_SIZE;
        s->config->reader_guard = 0; /* whichever CPU this runs on is the right one */
        s->config->batch_pool = 8 * (BATCH_ARENA + BATCH_ENTRIES * sizeof(BatchEntry));
        s->started_with = config_ref(s->config);
        s->access = config_ref(s->config);
}

/* As supervisor_start(), but for threads, sockets and the configuration's events. */
void rig_start(Rig *rig) {
        Supervisor *s = &rig->supervisor;

        played_start();
        *rig = (Rig){ .supervisor = { .loop.ready_fd = -1, .closer = CLOSER_NULL, .readers.acknowledge_fd = -1,
                                      .subscriptions.memory = SUBSCRIBER_MEMORY_NULL, .ledger.losses = LOSSES_NULL,
                                      .changes.hotplug_fd = -1 } };
        supervisor_compose(s);
        make_settings(&s->settings);
        make_tracefs(rig);
        s->readers.attr = (AttrBase){ .clock = CLOCK_MONOTONIC, .has_lost = true, .inherits_reads = true,
                                      .watermark = RING_SIZE / WATERMARK_SHARE };
        assert_true(sd_event_new(&s->operations.event) >= 0);
        assert_int_equal(ledger_start_losses(&s->ledger), 0);
        assert_int_equal(readers_start_births(&s->readers), 0);
        assert_int_equal(readers_start_cpus(&s->readers, &rig->e), 0);
        assert_int_equal(readers_start_stalls(&s->readers), 0);
        assert_int_equal(readers_start(&s->readers, &rig->e), 0);
}

/* As supervisor_stop() behind the end of all threads. */
void rig_stop(Rig *rig) {
        Supervisor *s = &rig->supervisor;

        operations_deinit(&s->operations);
        for (size_t slot = 0; slot < s->readers.n_cpus; slot++)
                s->readers.by_slot[slot].thread.started = false;
        dispatcher_deinit(&s->readers.dispatcher);
        readers_free_stalls(&s->readers);
        readers_free_cpus(&s->readers);
        events_free_registered(&s->events);
        ledger_free_removed(&s->ledger);
        ledger_free_losses(&s->ledger);
        readers_free_births(&s->readers);
        events_free_charges(&s->events);
        comm_table_deinit(&s->readers.comms);
        process_tree_deinit(&s->readers.kin);
        cgroup_hierarchy_deinit(&s->host.cgroups);
        remove_tracefs(rig);
        s->operations.event = sd_event_unref(s->operations.event);
        config_unref(s->settings.config);
        config_unref(s->settings.started_with);
        config_unref(s->settings.access);
        assert_int_equal(played_count_open(), 0);
}

/* ---- changes, and what is to be seen of them --------------------------------------------------------------------- */

int rig_add(Rig *rig, const char *const *events, size_t n) {
        const AddOptions adding = { .owner = 0 };
        EventSpec specs[4] = { EVENT_SPEC_NULL };
        EventRefs refs = { .n = 0 };
        int r;

        assert_in_range(n, 1, ARRAY_SIZE(specs));
        for (size_t i = 0; i < n; i++) {
                specs[i].disabled = events[i][0] == '!';
                assert_true(asprintf(&specs[i].event, "%s", events[i] + specs[i].disabled) > 0); /* which never fails here */
        }
        r = changes_add(&rig->supervisor.changes, specs, n, &adding, &refs, &rig->e);
        for (size_t i = 0; i < n; i++)
                event_spec_deinit(&specs[i]);
        event_refs_deinit(&refs);
        return r;
}

Registration *rig_find(Rig *rig, const char *name) {
        return events_find(&rig->supervisor.events, name);
}

void rig_check_opened(Rig *rig, const char *name, bool on) {
        const Registration *g = rig_find(rig, name);
        const Readers *readers = &rig->supervisor.readers;

        assert_non_null(g);
        assert_int_equal(g->enabled, on);
        assert_int_equal(g->opened.n, RIG_CPUS);
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++) {
                const PlayedFd *p = played_fd(g->opened.fds[slot].fd);

                assert_non_null(p);
                assert_int_equal(p->is_on, on);
                assert_int_equal(p->cpu, readers->cpus[slot]);
                assert_int_equal(p->output, readers->carriers[slot]);
                assert_int_equal(p->id, g->opened.fds[slot].id);
                assert_non_null(snapshot_find(&readers->by_slot[slot].snapshot->cpus[slot], p->id));
        }
}

void rig_check_carriers(Rig *rig, bool on) {
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                assert_int_equal(played_fd(rig->supervisor.readers.carriers[slot])->is_on, on);
}

static uint64_t count_occurred(const Registration *g) {
        uint64_t n = 0;

        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                n += counters_expected(&g->event->counters[slot]) - counters_duplicates(&g->event->counters[slot]);
        return n;
}

uint64_t rig_occurred(Rig *rig, const char *name) {
        assert_int_equal(readers_cut(&rig->supervisor.readers), 0);
        return count_occurred(rig_find(rig, name));
}

static void put_fds(FILE *f, const char *what, const PerfFdSet *set) {
        for (size_t i = 0; i < set->n; i++)
                fprintf(f, "  %s fd %d id %llu slot %u%s\n", what, set->fds[i].fd, (unsigned long long)set->fds[i].id, set->fds[i].slot,
                        set->fds[i].is_successor ? " successor" : "");
}

static void put_event(FILE *f, const Registration *g) {
        fprintf(f, "%s %s filter %s period %llu attr %llu, occurred %llu\n", g->event->spec.name, g->enabled ? "on" : "off",
                g->event->spec.filter ? g->event->spec.filter : "-", (unsigned long long)g->event->spec.period,
                (unsigned long long)g->plan.attrs[0].sample_period, (unsigned long long)count_occurred(g));
        put_fds(f, "opened", &g->opened);
        put_fds(f, "pending", &g->pending);
        fprintf(f, "  layout %s\n", g->pending_layout ? "pending" : "its own");
}

static void put_reader(FILE *f, const Supervisor *s, uint32_t slot) {
        const Reader *r = &s->readers.by_slot[slot];
        const SnapshotCpu *c = &r->snapshot->cpus[slot];

        fprintf(f, "reader of slot %u: ring %zu, carrier fd %d of %d, %s, watermark %u\n", slot, r->ring.size, r->carrier_fd,
                s->readers.carriers[slot], r->snapshot->active ? "active" : "at rest", s->readers.attr.watermark);
        for (size_t i = 0; i < c->n_streams; i++)
                fprintf(f, "  stream %llu fd %d of %s%s%s\n", (unsigned long long)c->streams[i].id, c->streams[i].fd,
                        r->snapshot->events[c->streams[i].event].event->spec.name, c->streams[i].is_standby ? " standby" : "",
                        c->streams[i].is_successor ? " successor" : "");
}

static void put_kernel(FILE *f) {
        for (int fd = 0; fd < PLAYED_FDS_MAX; fd++) {
                const PlayedFd *p = played_fd(fd);

                if (p)
                        fprintf(f, "kernel fd %d id %llu CPU %d %s output %d filter %s period %llu\n", fd, (unsigned long long)p->id, p->cpu,
                                p->is_on ? "on" : "off", p->output, p->filter, (unsigned long long)p->attr.sample_period);
        }
}

char *rig_picture(Rig *rig) {
        const Supervisor *s = &rig->supervisor;
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        assert_int_equal(readers_cut(&rig->supervisor.readers), 0);
        fprintf(f, "%zu events, carriers %s\n", s->events.n_registrations, s->readers.active ? "on" : "off");
        for (const Registration *g = s->events.registrations; g; g = g->next)
                put_event(f, g);
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                put_reader(f, s, slot);
        put_kernel(f);
        assert_int_equal(fclose(f), 0);
        return text;
}

/* False: there is no n-th call. */
static bool fail_one(PlayedCall call, unsigned n, int error, RigChange prepare, RigChange change) {
        _cleanup_free_ char *before = NULL, *after = NULL;
        bool has_failed;
        Rig rig;
        int r;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        played_occur(3);
        before = rig_picture(&rig);
        played_fail(call, n, error);
        r = change(&rig);
        has_failed = played_has_failed();
        played_fail(call, 0, 0);
        if (!has_failed)
                assert_int_equal(r, 0);
        else if (call != PLAYED_ALLOCATION) /* some are done without */
                assert_int_not_equal(r, 0);
        if (r > 0) {
                after = rig_picture(&rig);
                assert_string_equal(after, before);
        }
        rig_stop(&rig);
        return has_failed;
}

unsigned rig_fail_each(PlayedCall call, int error, RigChange prepare, RigChange change) {
        unsigned n = 0;

        while (fail_one(call, n + 1, error, prepare, change))
                n++;
        return n;
}
