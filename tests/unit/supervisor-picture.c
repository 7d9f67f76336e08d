#include "tests/unit/supervisor-rig.h"

#include <stdio.h>

#include "daemon/supervisor/readers/publish.h"

/* ---- what is to be seen ------------------------------------------------------------------------------------------ */

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
        assert_int_equal(readers_cut(&rig->supervisor.readers, NULL), 0);
        return count_occurred(rig_find(rig, name));
}

static void put_fds(FILE *f, const char *what, const PerfFdSet *set) {
        for (size_t i = 0; i < set->n; i++)
                fprintf(f, "  %s fd %d id %llu slot %u%s%s\n", what, set->fds[i].fd, (unsigned long long)set->fds[i].id,
                        set->fds[i].slot, set->fds[i].is_successor ? " successor" : "", set->fds[i].leaves ? " leaves" : "");
}

static void put_event(FILE *f, const Registration *g) {
        fprintf(f, "%s%s%s %s filter %s period %llu attr %llu, occurred %llu\n", g->event->spec.configured ? "configured " : "",
                g->is_persistent ? "persistent " : "", g->event->spec.name, g->enabled ? "on" : "off",
                g->event->spec.filter ? g->event->spec.filter : "-", (unsigned long long)g->event->spec.period,
                (unsigned long long)g->plan.attrs[0].sample_period, (unsigned long long)count_occurred(g));
        put_fds(f, "opened", &g->opened);
        put_fds(f, "pending", &g->pending);
        fprintf(f, "  layout %s%s%s\n", g->pending_layout ? "pending" : "its own", g->is_selected ? ", selected" : "",
                g->is_planned ? ", planned" : "");
}

static void put_reader(FILE *f, const Supervisor *s, uint32_t slot) {
        const Reader *r = &s->readers.by_slot[slot];
        const SnapshotCpu *c = r->snapshot ? &r->snapshot->cpus[slot] : NULL;

        if (!c) {
                fprintf(f, "no reader of slot %u, which is %s\n", slot, s->readers.online[slot] ? "online" : "offline");
                return;
        }
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
                        fprintf(f, "kernel fd %d id %llu CPU %d %s output %d filter %s period %llu\n", fd,
                                (unsigned long long)p->id, p->cpu, p->is_on ? "on" : "off", p->output, p->filter,
                                (unsigned long long)p->attr.sample_period);
        }
}

char *rig_picture(Rig *rig) {
        const Supervisor *s = &rig->supervisor;
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        assert_int_equal(readers_cut(&rig->supervisor.readers, NULL), 0);
        fprintf(f, "%zu events, carriers %s\n", s->events.n_registrations, s->readers.active ? "on" : "off");
        for (const Registration *g = s->events.registrations; g; g = g->next)
                put_event(f, g);
        for (const PendingEvent *p = s->events.pending.first; p; p = p->next)
                fprintf(f, "pending %s, %s: %s\n", p->spec->name, p->is_configured ? "configured" : "kept", p->why);
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                put_reader(f, s, slot);
        put_kernel(f);
        assert_int_equal(fclose(f), 0);
        return text;
}

static void check_refused(Rig *rig, PlayedCall call, int r, const char *before) {
        _cleanup_free_ char *after = NULL;

        if (call != PLAYED_ALLOCATION) /* some are done without */
                assert_int_not_equal(r, 0);
        if (r <= 0)
                return;
        after = rig_picture(rig);
        assert_string_equal(after, before);
}

/* False: there is no n-th call. */
static bool fail_one(PlayedCall call, unsigned n, int error, RigChange prepare, RigChange change, RigOutcome outcome) {
        _cleanup_free_ char *before = NULL;
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
        else
                outcome(&rig, call, r, before);
        rig_stop(&rig);
        return has_failed;
}

unsigned rig_fail_each_as(PlayedCall call, int error, RigChange prepare, RigChange change, RigOutcome outcome) {
        unsigned n = 0;

        while (fail_one(call, n + 1, error, prepare, change, outcome))
                n++;
        return n;
}

unsigned rig_fail_each(PlayedCall call, int error, RigChange prepare, RigChange change) {
        return rig_fail_each_as(call, error, prepare, change, check_refused);
}
