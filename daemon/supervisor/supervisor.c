/*
 * Start and stop of the daemon: one visible list and its mirror. Stopping follows the data: events are disabled, rings
 * drained, queues flushed, every stream gets its closing ledger, and only then threads end and fds close.
 */
#include "daemon/supervisor/supervisor.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/base/peer-socket.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/privileges/system-calls.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/configuration/load-persistent.h"
#include "daemon/supervisor/configuration/retry.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/holders.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/room.h"
#include "daemon/supervisor/ledger/base.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/streams/pool.h"
#include "daemon/supervisor/streams/sockets.h"
#include "daemon/supervisor/subscriptions/subscription.h"

#define DISPATCHER_END_MOST (10 * NSEC_PER_SEC) /* what is in its queues goes first */
#define SELF_FILTER_MAX 2048 /* of the page that PERF_EVENT_IOC_SET_FILTER takes */

/* ---- what is started, in order ----------------------------------------------------------------------------------- */

/* Asked before anything is opened: whoever is refused an fd later can only say that none is left. */
static int start_limits(Explanation *e) {
        long n_cpus = sysconf(_SC_NPROCESSORS_ONLN); /* without sysfs it counts the CPUs that we may run on */
        size_t need = events_own_fds(n_cpus > 0 ? (size_t)n_cpus : 1);
        int r = fd_limit_init();

        if (r < 0 || fd_limit() >= need)
                return r;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "perfd itself needs %zu fds on %ld CPUs, and may have %llu: raise LimitNOFILE= "
                      "(RLIMIT_NOFILE)", need, n_cpus, (unsigned long long)fd_limit());
}

/* Probes that a perfd left which was killed. That they cannot be removed is no reason not to start. */
static void remove_leftovers(Supervisor *s) {
        Explanation e = EXPLANATION_NULL;
        size_t n = 0;
        int r = probe_remove_leftovers(&s->host.tracing, &n, &e);

        if (n > 0)
                log_print(LOG_NOTICE, MESSAGE_PROBES_LEFT, "%zu probes of a perfd that has ended are removed", n);
        if (r != 0)
                log_print(LOG_WARNING, MESSAGE_PROBES_LEFT, "probes of a perfd that has ended cannot be removed: %s",
                          r > 0 ? e.text : error_text(r));
}

static int reduce_privileges(Supervisor *s) {
        int r = privileges_reduce(&s->host.privileges);

        if (r == 0 && s->host.privileges.text[0])
                log_print(s->host.privileges.is_wrong ? LOG_WARNING : LOG_INFO, MESSAGE_PRIVILEGES, "%s", s->host.privileges.text);
        if (r == 0) {
                int error = system_calls_reduce(); /* tracefs is mounted by now, if it may be */

                if (error < 0)
                        log_print(LOG_WARNING, MESSAGE_PRIVILEGES,
                                  "the seccomp filter of perfd cannot be installed: %s", error_text(error));
        }
        return r;
}

/* What needs no tracefs works without: a host that does not let perfd have it is no reason not to start. */
static int start_tracing(Supervisor *s) {
        Explanation e = EXPLANATION_NULL;
        int r = tracing_open(&s->host.tracing, NULL, &e); /* mounts it, where it may */

        if (r <= 0)
                return r;
        log_print_with(LOG_WARNING, MESSAGE_NO_TRACEFS, LOG_FIELDS({ "REASON", e.reason }),
                       "until tracefs is mounted, tracepoints are refused, and so are probes that need it: %s", e.text);
        return tracing_open_missing(&s->host.tracing, e.text);
}

static int start_kernel(Supervisor *s, Explanation *e) {
        int r;

        s->readers.attr.clock = s->settings.config->clock;
        s->readers.attr.watermark = (uint32_t)(s->settings.config->ring_size / WATERMARK_SHARE);
        r = open_probe(&s->readers.attr.has_lost, e);
        if (r == 0)
                r = open_probe_reads(&s->readers.attr.inherits_reads, e);
        if (r == 0)
                r = start_tracing(s);
        if (r == 0)
                r = readers_open_idle(&s->readers.idle, &s->readers.no_idle);
        if (r == 0 && !s->readers.idle)
                log_print(LOG_INFO, MESSAGE_CPUS_WOKEN,
                          "time-ordered streams wake idle CPUs: %s", s->readers.no_idle.text);
        if (r == 0)
                r = reduce_privileges(s);
        if (r == 0)
                remove_leftovers(s);
        return r;
}

static int start_threads(Supervisor *s, Explanation *e) {
        int r;

        readers_start_idle(&s->readers);
        r = closer_start(&s->closer);
        if (r == 0)
                r = supervisor_start_watchdog(s);
        if (r == 0)
                r = dispatcher_start(&s->readers.dispatcher);
        if (r < 0)
                return readers_explain_thread(r, e);
        s->readers.dispatcher_started = true;
        events_give_closer(&s->events, true);
        s->readers.stalls = (StallMonitor){ .readers = s->readers.by_slot,
                                            .n = s->readers.n_cpus,
                                            .priority = s->settings.config->reader_priority,
                                            .cpus = s->readers.reader_cpus,
                                            .n_cpus = s->readers.n_reader_cpus };
        r = stall_monitor_start(&s->readers.stalls);
        return r < 0 ? readers_explain_thread(r, e) : 0;
}

static int compare_tids(const void *a, const void *b) {
        pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

        return (x > y) - (x < y);
}

/* Our threads, as ranges of consecutive tids, in the kernel's filter language. */
static int make_self_filter(Supervisor *s) {
        _cleanup_free_ pid_t *tids = calloc(s->readers.n_cpus + 5, sizeof(*tids));
        _cleanup_free_ char *text = malloc(SELF_FILTER_MAX);
        size_t n = 0, used = 0;

        if (!tids || !text)
                return error_origin(-ENOMEM);
        if (!tasks_in_root_namespace())
                return 0; /* common_pid is another number than ours: the readers do it */
        tids[n++] = getpid();
        tids[n++] = s->closer.thread.tid;
        tids[n++] = s->readers.dispatcher.thread.tid;
        tids[n++] = s->readers.stalls.thread.tid;
        if (s->loop.watchdog.thread.started)
                tids[n++] = s->loop.watchdog.thread.tid;
        for (size_t i = 0; i < s->readers.n_cpus; i++)
                if (s->readers.online[i])
                        tids[n++] = s->readers.by_slot[i].thread.tid;
        qsort(tids, n, sizeof(*tids), compare_tids);
        for (size_t i = 0, last; i < n; i = last + 1) {
                for (last = i; last + 1 < n && tids[last + 1] == tids[last] + 1;)
                        last++;
                used += (size_t)snprintf(text + used, SELF_FILTER_MAX - used, "%s(common_pid < %d || common_pid > %d)",
                                         i ? " && " : "", (int)tids[i], (int)tids[last]);
                if (used >= SELF_FILTER_MAX)
                        return 0; /* too scattered: the readers do it */
        }
        s->events.self_filter = TAKE_PTR(text);
        return 0;
}

static int listen_on_paths(Supervisor *s, Explanation *e) {
        _cleanup_free_ char *control = NULL, *stream = NULL;
        const Config *c = s->settings.config;
        int r;

        if (s->settings.runtime_directory &&
            (asprintf(&control, "%s/control.sock", s->settings.runtime_directory) < 0 ||
             asprintf(&stream, "%s/stream.sock", s->settings.runtime_directory) < 0))
                return error_origin(-ENOMEM);
        r = control_listen(&s->control, control ? control : c->control_path, c->control_mode, NULL, true, e);
        if (r == 0)
                r = control_listen(&s->control, stream ? stream : c->stream_path, c->stream_mode,
                                   s->settings.runtime_directory ? NULL : c->stream_group, false, e);
        return r;
}

static unsigned least(uint64_t a, uint64_t b) {
        return (unsigned)(a < b ? a : b);
}

/* Connections take fds from events. So where there are few, clients that may change nothing have half of them at most. */
static ControlLimits connection_limits(const Supervisor *s) {
        const uint64_t own = events_own_fds(s->readers.n_cpus), all = fd_limit(), room = all > own + 8 ? all - own : 8;
        const Config *c = s->settings.config;
        ControlLimits l = { .connections = least(c->connections_max, room / 2),
                            .connections_per_uid = least(c->connections_per_uid, room / 2),
                            .changers = least(c->connections_control, room / 4),
                            .sockets = least(UINT_MAX, room / 2) };

        if (l.connections < c->connections_max || l.changers < c->connections_control)
                log_print(LOG_NOTICE, MESSAGE_NO_CONNECTIONS,
                          "connections are limited to %u on the stream socket and %u on the control socket, because perfd may "
                          "have only %llu fds: raise LimitNOFILE= (RLIMIT_NOFILE) for connections.max and "
                          "connections.control", l.connections, l.changers, (unsigned long long)all);
        return l;
}

/* An event ends with it. */
static bool keeps_connection(void *userdata, uint64_t id) {
        const Supervisor *s = userdata;

        for (const Registration *g = s->events.registrations; g; g = g->next)
                if (holders_have(g, id))
                        return true;
        return false;
}

static int on_request(void *userdata, Connection *c, const Perfd__V1__Request *request) {
        Supervisor *s = userdata;

        return requests_on_request(&s->requests, c, request);
}

static void on_connection_gone(void *userdata, uint64_t id) {
        Supervisor *s = userdata;

        changes_on_connection_gone(&s->changes, id);
}

/* systemd's sockets, by their FileDescriptorName=; else our own paths. */
static int start_listening(Supervisor *s, Explanation *e) {
        char **names = NULL;
        int n, r;

        control_init(&s->control, s->operations.event, connection_limits(s), on_request, s);
        s->control.keeps = keeps_connection;
        s->control.gone = on_connection_gone;
        r = control_given(&names, &n, e);
        if (r != 0)
                return r;
        if (n == 0)
                return listen_on_paths(s, e);
        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i;
                bool control = strcmp(names[i], "control") == 0;

                if (r == 0 && !control && strcmp(names[i], "stream") != 0)
                        r = refuse(e, REFUSED_INVALID, "bad-config",
                                   "systemd passed a socket called %s: FileDescriptorName= must be control or stream",
                                   names[i]);
                if (r == 0)
                        r = control_check_given(fd, names[i], e);
                if (r == 0) {
                        *(control ? &s->settings.is_given_control : &s->settings.is_given_stream) = true;
                        streams_say_unused_access(&s->streams, fd, control);
                }
                if (r == 0)
                        r = control_listen_fd(&s->control, fd, control);
                free(names[i]);
        }
        free(names);
        return r;
}

static int start_notices(Supervisor *s) {
        int r = operations_listen(&s->operations, CHANGE_NOTICES, s->readers.dispatcher.notices.fd);

        if (r == 0)
                r = subscriptions_start_memory(&s->subscriptions);
        return r < 0 ? r : changes_follow_cpus(&s->changes);
}

static int apply_config(Supervisor *s, Explanation *e) {
        int r = configuration_apply_initial(&s->configuration, e);

        notes_say(&s->operations.notes, "the configuration");
        return r;
}

static int load_persistent(Supervisor *s) {
        int r = configuration_load_persistent(&s->configuration);

        notes_say(&s->operations.notes, "persistent events");
        return r;
}

/* ---- the list and its mirror ------------------------------------------------------------------------------------- */

int supervisor_start(Supervisor *s, Explanation *e) {
        int r;

        thread_assert(THREAD_MAIN);
        (void)mallopt(M_ARENA_MAX, 1); /* packets come from any holder of the dispatch lock: none keeps what others could use */
        supervisor_compose(s);
        s->settings.started = clock_now(CLOCK_MONOTONIC);
        s->settings.started_with = config_ref(s->settings.config);
        s->settings.access = config_ref(s->settings.config);
        if ((r = start_limits(e)) != 0 ||        /* fds */
            (r = supervisor_start_loop(s)) != 0 || /* signals, watchdog */
            (r = configuration_start_pending(&s->configuration)) != 0 || /* its timer */
            (r = persistent_start(&s->changes)) != 0 ||  /* the same */
            (r = ledger_start_losses(&s->ledger)) != 0 ||  /* who is told of them */
            (r = readers_start_births(&s->readers)) != 0 ||  /* the same */
            (r = start_kernel(s, e)) != 0 ||     /* tracefs, and which privileges all of what follows has */
            (r = readers_start_cpus(&s->readers, e)) != 0 ||    /* a carrier, a ring and batches for each CPU */
            (r = readers_start_stalls(&s->readers)) != 0 ||     /* who does not answer */
            (r = start_threads(s, e)) != 0 ||            /* closer, watchdog, dispatcher, which sees idle CPUs; stall monitor */
            (r = readers_start(&s->readers, e)) != 0 || /* one for each CPU */
            (r = start_notices(s)) != 0 ||       /* what the dispatcher says, CPUs that come and go */
            (r = make_self_filter(s)) != 0 ||    /* now that our tids are known */
            (r = apply_config(s, e)) != 0 ||            /* events */
            (r = load_persistent(s)) != 0 ||                  /* those of clients */
            (r = start_listening(s, e)) != 0)    /* sockets: whoever connects finds everything there */
                return r;
        notifier_send(&s->loop.notifier, "READY=1");
        if (s->loop.ready_fd >= 0) {
                ssize_t n = write(s->loop.ready_fd, "\n", 1);

                if (n != 1)
                        log_print(LOG_WARNING, MESSAGE_NOTIFY_UNREAD, "the fd of --ready-fd cannot be written: %m");
                s->loop.ready_fd = close_fd(s->loop.ready_fd);
        }
        log_print(LOG_INFO, MESSAGE_READY,
                  "ready: %zu CPUs, %zu events, %zu pending", readers_count_online(&s->readers), s->events.n_registrations,
                  events_count_pending(&s->events));
        return 0;
}

typedef struct Closing {
        Supervisor *supervisor;
        size_t n_left;
} Closing;

/*
 * Linux waits for RCU at the last close of each tracepoint, for whoever is killed too: a thousand of them take half a minute. The
 * service manager is asked for time as long as they become fewer.
 */
static void ask_for_time(void *userdata, size_t n_left) {
        Closing *c = userdata;

        if (n_left < c->n_left)
                notifier_send(&c->supervisor->loop.notifier, "EXTEND_TIMEOUT_USEC=15000000");
        c->n_left = n_left;
}

static void stop_closer(Supervisor *s) {
        Closing closing = { s, SIZE_MAX };

        closer_stop(&s->closer, ask_for_time, &closing);
}

/* A thread never answered: all that it may look at is left to the end of the process, but for what would outlive that. */
static void abandon_threads(Supervisor *s) {
        for (uint32_t slot = 0; slot < s->readers.n_cpus; slot++)
                reader_abandon(&s->readers.by_slot[slot]);
        readers_abandon_deferred(&s->readers);
        for (Registration *g = s->events.registrations; g; g = g->next) {
                event_fds_close(&s->events, &g->opened);
                event_fds_close(&s->events, &g->pending);
                closer_remove_probe(&s->closer, TAKE_PTR(g->probe)); /* behind its fds */
        }
        stop_closer(s);
        watchdog_stop(&s->loop.watchdog);
}

/* As long as it moves, but not for ever; it is known whether it answers. */
static bool dispatcher_ends(Supervisor *s) {
        const nsec_t end = clock_now(CLOCK_MONOTONIC) + DISPATCHER_END_MOST;
        uint64_t seen = 0;

        (void)heartbeat_has_moved(&s->readers.dispatcher.heartbeat, &seen);
        while (!dispatcher_join_within(&s->readers.dispatcher,
                                       s->readers.unanswered.since > 0 ? NSEC_PER_SEC : DISPATCHER_STOP_MOST))
                if (!heartbeat_has_moved(&s->readers.dispatcher.heartbeat, &seen) || clock_now(CLOCK_MONOTONIC) >= end)
                        return false;
        return true;
}

/* False: its thread does not end. */
static bool stop_dispatcher(Supervisor *s) {
        DispatcherCommand *quit = calloc(1, sizeof(*quit));

        if (!quit)
                abort();
        quit->kind = DISPATCHER_QUIT;
        dispatcher_post(&s->readers.dispatcher, quit);
        if (dispatcher_ends(s))
                return true;
        log_print(LOG_ERR, MESSAGE_THREAD_LEFT,
                  "perfd exits while the dispatcher (tid %d) does not respond; it is %s. What streams have not sent is lost",
                  (int)s->readers.dispatcher.thread.tid, readers_thread_state(s->readers.dispatcher.thread.tid));
        return false;
}

bool supervisor_stop(Supervisor *s) {
        bool has_ended = true;

        s->control.gone = NULL; /* everything goes */
        operations_deinit(&s->operations);
        control_deinit(&s->control);
        doctor_report_deinit(&s->requests.examined);
        requests_forget_kernel_names(&s->requests);
        readers_stop(&s->readers);
        if (!stall_monitor_end(&s->readers.stalls)) {
                log_print(LOG_ERR, MESSAGE_THREAD_LEFT, "perfd exits while the stall monitor (tid %d) does not respond; it is %s",
                          (int)s->readers.stalls.thread.tid, readers_thread_state(s->readers.stalls.thread.tid));
                has_ended = false;
        }
        readers_end_look(&s->readers);
        if (s->readers.dispatcher_started)
                has_ended = stop_dispatcher(s) && has_ended;
        if (s->readers.answering.n > 0)
                log_print(LOG_ERR, MESSAGE_THREAD_LEFT,
                          "perfd exits while a reader does not respond: what is in its ring buffer is lost");
        if (s->readers.answering.n > 0 || !has_ended) {
                abandon_threads(s);
                return false;
        }
        stall_monitor_stop(&s->readers.stalls);
        dispatcher_deinit(&s->readers.dispatcher);
        s->readers.idle = idle_cpus_free(s->readers.idle);
        readers_free_stalls(&s->readers);
        readers_free_cpus(&s->readers);
        readers_free_budgets(&s->readers);
        close_fd(s->changes.hotplug_fd);
        subscriptions_free(&s->subscriptions);
        for (SubscriberEntry *next; s->subscriptions.subscribers; s->subscriptions.subscribers = next) {
                next = s->subscriptions.subscribers->next;
                (void)ledger_base_free(&s->ledger, s->subscriptions.subscribers->base);
                credentials_deinit(&s->subscriptions.subscribers->peer);
                (void)stream_pool_unref(s->subscriptions.subscribers->pool);
                free(s->subscriptions.subscribers);
        }
        subscriptions_free_memory(&s->subscriptions);
        events_free_registered(&s->events);
        ledger_free_removed(&s->ledger);
        configuration_free_pending(&s->configuration);
        ledger_free_losses(&s->ledger);
        readers_free_births(&s->readers);
        configuration_free_persistent(&s->configuration);
        persistent_free(&s->changes);
        events_give_closer(&s->events, false);
        stop_closer(s);
        peer_socket_stop();
        events_free_charges(&s->events);
        watchdog_stop(&s->loop.watchdog);
        comm_table_deinit(&s->readers.comms);
        process_tree_deinit(&s->readers.process_tree);
        free(s->events.self_filter);
        task_families_deinit(&s->events.families);
        changes_unfollow_cgroups(&s->changes);
        cgroup_hierarchy_deinit(&s->host.cgroups);
        tracing_close(&s->host.tracing);
        kernel_symbol_index_deinit(&s->host.kernel_symbols);
        sd_event_source_disable_unref(s->loop.feeding);
        sd_event_source_disable_unref(s->loop.goodbye);
        notifier_deinit(&s->loop.notifier);
        s->operations.event = sd_event_unref(s->operations.event);
        config_unref(s->settings.config);
        config_unref(s->settings.started_with);
        config_unref(s->settings.access);
        free(s->settings.config_path);
        free(s->settings.runtime_directory);
        close_fd(s->loop.ready_fd);
        return true;
}
