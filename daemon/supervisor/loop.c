/*
 * The loop of main, and what ends it or looks after it: signals, the watchdog, the goodbye to subscribers. A stop does not
 * leave the loop at once: streams get their closing ledgers first.
 */
#include "daemon/supervisor/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/configuration/retry.h"
#include "daemon/supervisor/events/external.h"
#include "daemon/supervisor/events/inherited-probes.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/streams/close.h"
#include "daemon/supervisor/streams/snapshot.h"

#define GOODBYE_USEC 5000000 /* for subscribers to take their closing ledger */
#define GOODBYE_STALLED_USEC 1000000 /* for a dispatcher that does not answer to go on, and send it */

static int on_goodbye_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Supervisor *s = userdata;

        log_print(LOG_NOTICE, MESSAGE_NO_LEDGER, "%zu subscribers did not read their closing ledger in time",
                  s->readers.n_subscribers);
        return sd_event_exit(s->operations.event, s->loop.exit_code);
}

/* Every stream is closed with its ledger; the loop ends when all have taken it, or after a while. */
static int say_goodbye(void *userdata) {
        Supervisor *s = userdata;
        int r;

        if (s->operations.is_stopping)
                return 0;
        s->operations.is_stopping = true;
        notifier_send(&s->loop.notifier, "STOPPING=1");
        r = changes_disable_all(&s->changes);
        if (r < 0) {
                log_print(LOG_ERR, MESSAGE_NO_LEDGER,
                          "an event cannot be disabled, so streams end without a closing ledger: %s", error_text(r));
                return sd_event_exit(s->operations.event, s->loop.exit_code ? s->loop.exit_code : 1);
        }
        r = ledger_say_last_losses(&s->ledger, NULL, 0);
        if (r < 0)
                return r;
        if (s->readers.n_subscribers == 0)
                return sd_event_exit(s->operations.event, s->loop.exit_code);
        r = streams_close_all(&s->streams, "shutdown");
        if (r < 0)
                return r;
        r = error_origin(sd_event_source_set_time_relative(
                s->loop.goodbye, s->readers.unanswered.since > 0 ? GOODBYE_STALLED_USEC : GOODBYE_USEC));
        return r < 0 ? r : error_origin(sd_event_source_set_enabled(s->loop.goodbye, SD_EVENT_ONESHOT));
}

static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Supervisor *s = userdata;

        log_print(LOG_INFO, MESSAGE_STOPPING, "stopping on signal %u", si->ssi_signo);
        operations_set_due(&s->operations, CHANGE_STOP);
        return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Supervisor *s = userdata;

        operations_set_due(&s->operations, CHANGE_RELOAD);
        return 0;
}

static int reload_on_signal(void *userdata) {
        Supervisor *s = userdata;
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;
        Explanation e = EXPLANATION_NULL;
        char state[64];
        int r;

        (void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
                       (unsigned long long)(clock_now(CLOCK_MONOTONIC) / NSEC_PER_USEC));
        notifier_send(&s->loop.notifier, state);
        r = configuration_reload(&s->configuration, NULL, &reply, &e);
        notes_say(&s->operations.notes, "the configuration");
        if (r == 0)
                log_print(LOG_INFO, MESSAGE_RELOADED,
                          "reloaded: %u added, %u removed, %u changed, %u kept", reply.added, reply.removed,
                          reply.changed, reply.kept);
        else if (r > 0)
                log_print_lines(LOG_ERR, MESSAGE_RELOAD_REFUSED, LOG_FIELDS({ "REASON", e.reason }),
                                "not reloaded, nothing has changed", e.text);
        notifier_send(&s->loop.notifier, "READY=1");
        return r < 0 ? r : 0;
}

static bool threads_are_alive(Supervisor *s) {
        bool alive = heartbeat_check(&s->readers.dispatcher.heartbeat);

        for (uint32_t i = 0; i < s->readers.n_cpus; i++)
                if (s->readers.online[i] && !heartbeat_check(&s->readers.by_slot[i].heartbeat))
                        readers_doubt(&s->readers, i, clock_now(CLOCK_MONOTONIC), "for its heartbeat"); /* the others go on, and so does perfd */
        return alive;
}

/* Fed only if the dispatcher has moved since the last time, or sleeps. Of a reader that does not, it is told to main alone. */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata) {
        Supervisor *s = userdata;
        uint64_t interval;

        if (threads_are_alive(s))
                notifier_feed();
        else
                log_print(LOG_ERR, MESSAGE_DISPATCHER_STALLED,
                          "the dispatcher (tid %d) makes no progress: the watchdog is not notified",
                          (int)s->readers.dispatcher.thread.tid);
        if (sd_watchdog_enabled(0, &interval) <= 0)
                return 0;
        return sd_event_source_set_time_relative(source, interval / 3) < 0
                       ? 0
                       : error_origin(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT));
}

/* To the loop, for as long as that is. A handler that gives a negative ends perfd; by default it would only be disabled. */
static int source_give(sd_event_source *source) {
        int r = error_origin(sd_event_source_set_exit_on_failure(source, true));

        if (r >= 0)
                r = error_origin(sd_event_source_set_floating(source, true));
        sd_event_source_unref(source);
        return r;
}

/* Streams have ended: of a perfd that ends it may have been the last one. */
static int on_notices(void *userdata) {
        Supervisor *s = userdata;
        int r = streams_on_notices(&s->streams);

        if (r >= 0 && s->operations.is_stopping && s->readers.n_subscribers == 0)
                r = sd_event_exit(s->operations.event, s->loop.exit_code);
        return r;
}

/* Each change is made where what it is about is. */
static void set_handlers(Supervisor *s) {
        const struct {
                int (*make)(void *userdata);
                void *userdata;
        } handlers[] = {
                [CHANGE_STOP] = { say_goodbye, s },
                [CHANGE_READERS] = { changes_on_answers, &s->changes },
                [CHANGE_HOTPLUG] = { changes_on_hotplug, &s->changes },
                [CHANGE_NOTICES] = { on_notices, s },
                [CHANGE_CGROUPS] = { changes_on_cgroups, &s->changes },
                [CHANGE_ORPHANS] = { changes_remove_orphans, &s->changes },
                [CHANGE_RELOAD] = { reload_on_signal, s },
                [CHANGE_PENDING] = { configuration_retry_pending, &s->configuration },
                [CHANGE_STATE] = { changes_store_state, &s->changes },
                [CHANGE_LOSSES] = { ledger_on_losses, &s->ledger },
        };

        static_assert(ARRAY_SIZE(handlers) == _CHANGE_KIND_MAX, "a change is made by nobody: give it a handler here");
        for (int kind = 0; kind < _CHANGE_KIND_MAX; kind++)
                operations_set_handler(&s->operations, (ChangeKind)kind, handlers[kind].make, handlers[kind].userdata);
}

int supervisor_start_loop(Supervisor *s) {
        static const struct {
                int number;
                sd_event_signal_handler_t handler;
        } signals[] = { { SIGTERM, on_terminate }, { SIGINT, on_terminate }, { SIGHUP, on_reload } };
        sd_event_source *source;
        uint64_t interval;
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        r = error_origin(sd_event_new(&s->operations.event));
        set_handlers(s);
        for (size_t i = 0; i < ARRAY_SIZE(signals) && r >= 0; i++) {
                r = error_origin(sd_event_add_signal(s->operations.event, &source, signals[i].number, signals[i].handler, s));
                if (r >= 0)
                        r = source_give(source);
        }
        if (r >= 0) /* the first timer of the loop, for which an fd is opened: all later ones need none */
                r = error_origin(sd_event_add_time(s->operations.event, &s->loop.goodbye, CLOCK_MONOTONIC, 0, 0,
                                                   on_goodbye_over, s));
        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->loop.goodbye, SD_EVENT_OFF));
        if (r >= 0)
                r = error_origin(sd_event_source_set_exit_on_failure(s->loop.goodbye, true));
        if (r >= 0)
                r = notifier_init(&s->loop.notifier, s->operations.event);
        if (r >= 0 && sd_watchdog_enabled(0, &interval) > 0)
                r = error_origin(sd_event_add_time_relative(s->operations.event, &s->loop.feeding, CLOCK_MONOTONIC,
                                                            interval / 3, 0, on_watchdog, s));
        return r < 0 ? r : 0;
}

int supervisor_start_watchdog(Supervisor *s) {
        uint64_t interval;

        if (sd_watchdog_enabled(0, &interval) <= 0)
                return 0;
        return watchdog_start(&s->loop.watchdog, getpid(), interval / 3 * NSEC_PER_USEC, notifier_feed);
}

/*
 * As sd_event_loop(3), but that operations run between two iterations, and closes begin only while it waits. What one of them has read
 * for itself is forgotten behind it.
 */
int supervisor_run(Supervisor *s) {
        int r = 0, code;

        while (r >= 0 && sd_event_get_state(s->operations.event) != SD_EVENT_FINISHED) {
                r = operations_run(&s->operations);
                kernel_symbol_index_forget(&s->host.kernel_symbols);
                if (r < 0 || sd_event_get_state(s->operations.event) == SD_EVENT_FINISHED)
                        break;
                r = error_origin(sd_event_prepare(s->operations.event));
                if (r == 0 && operations_are_waiting(&s->operations))
                        r = error_origin(sd_event_wait(s->operations.event, 0));
                else if (r == 0) {
                        closer_go(&s->closer);
                        r = error_origin(sd_event_wait(s->operations.event, UINT64_MAX));
                        closer_hold(&s->closer);
                }
                if (r > 0)
                        r = error_origin(sd_event_dispatch(s->operations.event));
        }
        closer_go(&s->closer);
        if (r >= 0)
                r = error_origin(sd_event_get_exit_code(s->operations.event, &code));
        return r < 0 ? r : code;
}
