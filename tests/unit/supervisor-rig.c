#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/configuration/load-persistent.h"
#include "daemon/supervisor/configuration/retry.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/ledger/base.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/subscriptions/subscription.h"

#define RING_SIZE ((size_t)16 * 1024)

/* ---- CPUs -------------------------------------------------------------------------------------------------------- */

static int list_cpus(uint32_t **ret_cpus, size_t *ret_n, bool all) {
        *ret_n = 0;
        *ret_cpus = malloc(RIG_CPUS * sizeof(**ret_cpus));
        if (!*ret_cpus)
                return error_origin(-ENOMEM);
        for (int cpu = PLAYED_CPU; cpu < PLAYED_CPU + RIG_CPUS; cpu++)
                if (all || played_cpu_is_online(cpu))
                        (*ret_cpus)[(*ret_n)++] = (uint32_t)cpu;
        return 0;
}

int __wrap_cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
int __wrap_cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        return list_cpus(ret_cpus, ret_n, true);
}

int __wrap_cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
int __wrap_cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        return list_cpus(ret_cpus, ret_n, false);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void make_folder(const char *path) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                fail_msg("%s: %s", path, strerror(errno));
}

void rig_make_tracepoint(Rig *rig, const char *name) {
        const char *colon = strchr(name, ':');
        char path[160], format[160];
        FILE *f;

        assert_non_null(colon);
        (void)snprintf(path, sizeof(path), "%s/events", rig->folder);
        make_folder(path);
        (void)snprintf(path, sizeof(path), "%s/events/%.*s", rig->folder, (int)(colon - name), name);
        make_folder(path);
        (void)snprintf(path, sizeof(path), "%s/events/%.*s/%s", rig->folder, (int)(colon - name), name, colon + 1);
        make_folder(path);
        (void)snprintf(path, sizeof(path), "%s/events/%.*s/%s/format", rig->folder, (int)(colon - name), name, colon + 1);
        (void)snprintf(format, sizeof(format), FORMATS "/%.*s.%s", (int)(colon - name), name, colon + 1);
        assert_int_equal(access(format, R_OK), 0);
        assert_int_equal(symlink(format, path), 0);
        (void)snprintf(path, sizeof(path), "%s/available_events", rig->folder);
        f = fopen(path, "a");
        assert_non_null(f);
        assert_true(fprintf(f, "%s\n", name) > 0);
        assert_int_equal(fclose(f), 0);
}

static void make_tracefs(Rig *rig) {
        /* in memory no folder has the number of one that is gone: what makes cgroups two */
        (void)snprintf(rig->folder, sizeof(rig->folder), "%s/test-perfd.XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(rig->folder));
        rig_make_tracepoint(rig, RIG_TRACEPOINT);
        assert_int_equal(tracing_open(&rig->supervisor.host.tracing, rig->folder, &rig->e), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
        return remove(path);
}

static void remove_tracefs(Rig *rig) {
        tracing_close(&rig->supervisor.host.tracing);
        assert_int_equal(nftw(rig->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
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

#define RIG_LIMITS ((ControlLimits){ .connections = 10, .connections_per_uid = 10, .changers = 10 })

static int on_request(void *userdata, Connection *c, const Perfd__V1__Request *request) {
        return requests_on_request(&((Supervisor *)userdata)->requests, c, request);
}

static void on_connection_gone(void *userdata, uint64_t id) {
        changes_on_connection_gone(&((Supervisor *)userdata)->changes, id);
}

/* As supervisor_start(), but for threads, sockets and the configuration's events. */
void rig_start(Rig *rig) {
        Supervisor *s = &rig->supervisor;

        played_start();
        played_threads_start(&s->readers.dispatcher);
        /* somebody is subscribed, so that side records are wanted; nobody hears of the tasks of this machine */
        *rig = (Rig){ .supervisor = { .loop.ready_fd = -1, .closer = CLOSER_NULL,
                                      .readers = { .acknowledge_fd = -1, .uid_socket = -1, .wants_tasks = true },
                                      .subscriptions.memory = SUBSCRIBER_MEMORY_NULL, .ledger.losses = LOSSES_NULL,
                                      .changes.hotplug_fd = -1 } };
        supervisor_compose(s);
        make_settings(&s->settings);
        make_tracefs(rig);
        s->readers.attr = (AttrBase){ .clock = CLOCK_MONOTONIC, .has_lost = true, .inherits_reads = true,
                                      .watermark = RING_SIZE / WATERMARK_SHARE };
        assert_int_equal(supervisor_start_loop(s), 0);
        assert_int_equal(configuration_start_pending(&s->configuration), 0);
        assert_int_equal(persistent_start(&s->changes), 0);
        assert_int_equal(ledger_start_losses(&s->ledger), 0);
        assert_int_equal(readers_start_births(&s->readers), 0);
        assert_int_equal(readers_start_cpus(&s->readers, &rig->e), 0);
        assert_int_equal(readers_start_stalls(&s->readers), 0);
        assert_int_equal(readers_start(&s->readers, &rig->e), 0);
        assert_int_equal(operations_listen(&s->operations, CHANGE_NOTICES, s->readers.dispatcher.notices.fd), 0);
        assert_int_equal(subscriptions_start_memory(&s->subscriptions), 0);
        control_init(&s->control, s->operations.event, RIG_LIMITS, on_request, s);
        s->control.gone = on_connection_gone;
}

static void free_subscribers(Supervisor *s) {
        for (SubscriberEntry *next; s->subscriptions.subscribers; s->subscriptions.subscribers = next) {
                next = s->subscriptions.subscribers->next;
                (void)ledger_base_free(&s->ledger, s->subscriptions.subscribers->base);
                credentials_deinit(&s->subscriptions.subscribers->peer);
                free(s->subscriptions.subscribers);
        }
}

/* As supervisor_stop() behind the end of all threads. */
void rig_stop(Rig *rig) {
        Supervisor *s = &rig->supervisor;

        control_deinit(&s->control);
        operations_deinit(&s->operations);
        doctor_report_deinit(&s->requests.examined);
        for (size_t slot = 0; slot < s->readers.n_cpus; slot++)
                s->readers.by_slot[slot].thread.started = false;
        dispatcher_deinit(&s->readers.dispatcher);
        readers_free_stalls(&s->readers);
        readers_free_cpus(&s->readers);
        subscriptions_free(&s->subscriptions);
        free_subscribers(s);
        subscriptions_free_memory(&s->subscriptions);
        events_free_registered(&s->events);
        ledger_free_removed(&s->ledger);
        configuration_free_pending(&s->configuration);
        ledger_free_losses(&s->ledger);
        readers_free_births(&s->readers);
        readers_free_budgets(&s->readers);
        configuration_free_persistent(&s->configuration);
        persistent_free(&s->changes);
        events_free_charges(&s->events);
        task_families_deinit(&s->events.families);
        comm_table_deinit(&s->readers.comms);
        process_tree_deinit(&s->readers.process_tree);
        changes_unfollow_cgroups(&s->changes);
        cgroup_hierarchy_deinit(&s->host.cgroups);
        sd_event_source_disable_unref(s->loop.goodbye);
        notifier_deinit(&s->loop.notifier);
        remove_tracefs(rig);
        s->operations.event = sd_event_unref(s->operations.event);
        config_unref(s->settings.config);
        config_unref(s->settings.started_with);
        config_unref(s->settings.access);
        free(s->settings.config_path);
        free(s->settings.runtime_directory);
        assert_int_equal(played_count_open(), 0);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

/* By asprintf(3), which never fails here. */
static void fill_spec(EventSpec *spec, const char *text) {
        const char *event;

        spec->disabled = text[0] == '!';
        text += spec->disabled;
        event = strchr(text, '=');
        if (event)
                assert_true(asprintf(&spec->name, "%.*s", (int)(event - text), text) > 0);
        assert_true(asprintf(&spec->event, "%s", event ? event + 1 : text) > 0);
}

int rig_add_specs(Rig *rig, EventSpec *specs, size_t n, const AddOptions *adding) {
        EventRefs refs = { .n = 0 };
        int r = changes_add(&rig->supervisor.changes, specs, n, adding, &refs, &rig->e);

        for (size_t i = 0; i < n; i++)
                event_spec_deinit(&specs[i]);
        event_refs_deinit(&refs);
        return r;
}

static int add(Rig *rig, const char *const *events, size_t n, bool keep) {
        EventSpec specs[4] = { EVENT_SPEC_NULL };

        assert_in_range(n, 1, ARRAY_SIZE(specs));
        for (size_t i = 0; i < n; i++)
                fill_spec(&specs[i], events[i]);
        return rig_add_specs(rig, specs, n, &(AddOptions){ .keep = keep });
}

int rig_add(Rig *rig, const char *const *events, size_t n) {
        return add(rig, events, n, false);
}

int rig_add_persistent(Rig *rig, const char *const *events, size_t n) {
        return add(rig, events, n, true);
}

int rig_remove(Rig *rig, const char *name) {
        char *const names[] = { (char *)name };
        EventRefs refs = { .n = 0 };
        int r = changes_remove(&rig->supervisor.changes, names, 1, &refs, &rig->e);

        event_refs_deinit(&refs);
        return r;
}

static int switch_all(Rig *rig, bool on) {
        char all[] = "*", *const names[] = { all };
        EventRefs refs = { .n = 0 };
        int r = changes_enable(&rig->supervisor.changes, names, 1, on, &refs, &rig->e);

        event_refs_deinit(&refs);
        return r;
}

int rig_enable_all(Rig *rig) {
        return switch_all(rig, true);
}

int rig_disable_all(Rig *rig) {
        return switch_all(rig, false);
}

static int tell_cpu(Rig *rig, bool is_online) {
        played_set_cpu(RIG_CPU, is_online);
        played_tell_cpu(RIG_CPU, is_online);
        return changes_on_hotplug(&rig->supervisor.changes);
}

int rig_cpu_goes(Rig *rig) {
        return tell_cpu(rig, false);
}

int rig_cpu_comes(Rig *rig) {
        return tell_cpu(rig, true);
}

Registration *rig_find(Rig *rig, const char *name) {
        return events_find(&rig->supervisor.events, name);
}

void rig_write_config(Rig *rig, const char *yaml) {
        char path[64];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/perfd.yaml", rig->folder);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(yaml, f) >= 0);
        assert_int_equal(fclose(f), 0);
        free(rig->supervisor.settings.config_path);
        rig->supervisor.settings.config_path = strdup(path);
        assert_non_null(rig->supervisor.settings.config_path);
}
