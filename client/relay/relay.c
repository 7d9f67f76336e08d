/*
 * The loop: signals, the watchdog, the end. Everything but metrics (metrics-server.c) is on one thread, whose turns have budgets (pump.c,
 * listener.c).
 */
#include "client/relay/relay.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "client/relay/connection.h"
#include "client/relay/listener.h"
#include "daemon/base/error.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"

#define GOODBYE_USEC 1500000 /* for all to hear why they end: connection_end() takes a second at most */

static int on_goodbye_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Relay *r = userdata;

        return sd_event_exit(r->event, 0);
}

static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Relay *r = userdata;

        if (r->is_stopping)
                return 0;
        r->is_stopping = true;
        log_print(LOG_INFO, MESSAGE_STOPPING, "stopping on signal %u", si->ssi_signo);
        (void)notify_send("STOPPING=1");
        listeners_close(r);
        if (r->publishing)
                publishing_stop(r->publishing);
        for (RelayConnection *c = r->connections, *next; c; c = next) {
                next = c->next;
                connection_end(c, PERFD__V1__STATUS__STATUS_INTERNAL, "shutdown", "the relay stops");
        }
        if (sd_event_source_set_time_relative(r->goodbye, GOODBYE_USEC) < 0)
                return sd_event_exit(r->event, 0);
        return sd_event_source_set_enabled(r->goodbye, SD_EVENT_ONESHOT);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Relay *r = userdata;
        char state[64];

        if (r->is_stopping)
                return 0;
        (void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
                       (unsigned long long)(clock_now(CLOCK_MONOTONIC) / NSEC_PER_USEC));
        (void)notify_send(state);
        (void)relay_reload(r); /* said in the log */
        (void)relay_set_expiry(r);
        (void)notify_send("READY=1");
        return 0;
}

static int on_expiry(sd_event_source *source, uint64_t usec, void *userdata) {
        Relay *r = userdata;

        relay_end_expired(r);
        return relay_set_expiry(r);
}

static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata) {
        uint64_t interval;

        (void)notify_send("WATCHDOG=1");
        if (sd_watchdog_enabled(0, &interval) <= 0)
                return 0;
        (void)sd_event_source_set_time_relative(source, interval / 3);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_signals(Relay *r) {
        static const struct {
                int number;
                sd_event_signal_handler_t handler;
        } signals[] = { { SIGTERM, on_terminate }, { SIGINT, on_terminate }, { SIGHUP, on_reload } };
        sigset_t set;
        int k = 0;

        sigemptyset(&set);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                sigaddset(&set, signals[i].number);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN); /* OpenSSL writes by write(2) */
        for (size_t i = 0; i < ARRAY_SIZE(signals) && k >= 0; i++)
                k = sd_event_add_signal(r->event, NULL, signals[i].number, signals[i].handler, r);
        return k;
}

/* Timers of each clock, for which fds are opened that might not be there later. */
static int add_timers(Relay *r) {
        uint64_t interval;
        int k = sd_event_add_time(r->event, &r->goodbye, CLOCK_MONOTONIC, 0, 0, on_goodbye_over, r);

        if (k >= 0)
                k = sd_event_source_set_enabled(r->goodbye, SD_EVENT_OFF);
        if (k >= 0)
                k = sd_event_add_time(r->event, &r->expiry, CLOCK_REALTIME, 0, 0, on_expiry, r);
        if (k >= 0)
                k = sd_event_source_set_enabled(r->expiry, SD_EVENT_OFF);
        if (k >= 0 && sd_watchdog_enabled(0, &interval) > 0)
                k = sd_event_add_time_relative(r->event, &r->feeding, CLOCK_MONOTONIC, interval / 3, 0, on_watchdog, r);
        return k;
}

static int start_listening(Relay *r) {
        Explanation e = EXPLANATION_NULL;
        int k = given_sockets_take(&r->given, &e);

        if (k == 0 && !r->tls && given_sockets_have(&r->given, GIVEN_TLS))
                k = refuse(&e, REFUSED_INVALID, "bad-config", "systemd has given a socket, but there is no 'listen' that names the "
                           "certificates for it");
        if (k == 0)
                k = listeners_add_given(r);
        if (k == 0)
                k = listeners_prepare(r, r->config, &e);
        if (k == 0 && r->tls && !r->listeners)
                k = refuse(&e, REFUSED_INVALID, "bad-config", "listen.tls names no address, and systemd has given no socket for TLS: nobody "
                           "could connect");
        if (k == 0)
                k = metrics_server_start(r->config, &r->counters, &r->given, NULL, &r->metrics, &e);
        if (k == 0)
                given_sockets_log_unnamed(&r->given, &r->config->listen, &r->config->metrics_listen);
        if (k > 0)
                log_print_with(LOG_ERR, MESSAGE_FAILED, LOG_FIELDS({ "REASON", e.reason }), "%s", e.text);
        return k;
}

static int start_loop(Relay *r) {
        int k = error_origin(fd_limit_init());

        if (k >= 0)
                k = error_origin(sd_event_new(&r->event));
        if (k >= 0)
                k = error_origin(socket_set_open(&r->sockets, r->event));
        if (k >= 0)
                k = error_origin(add_signals(r));
        if (k >= 0)
                k = error_origin(add_timers(r));
        return k < 0 ? k : 0;
}

int relay_start(Relay *r, const char *path) {
        int k = relay_load(path, true, &r->config, &r->tls);

        r->steps[RELAY_HANDSHAKE] = connection_shake_hands;
        r->steps[RELAY_GREETING] = connection_go_on_greeting;
        r->steps[RELAY_PUMPING] = connection_pump;
        r->steps[RELAY_ENDING] = connection_pump_last;
        r->steps[RELAY_LINGERING] = connection_linger;
        if (k == 0)
                k = start_loop(r);
        if (k == 0)
                atomic_store(&r->counters.certificate_end, (uint64_t)tls_own_expiry(r->tls));
        if (k == 0)
                k = start_listening(r);
        if (k == 0)
                k = publishing_start(r->event, r->config->stream, &r->config->publish, &r->publishing);
        if (k == 0) {
                log_print(LOG_INFO, MESSAGE_READY, "ready: %zu items of 'clients', %zu routes of 'publish'", r->config->n_rules,
                          r->config->publish.n_routes);
                (void)notify_send("READY=1");
        }
        return k;
}

/* When it stops, the last one that has gone is the end. */
int relay_run(Relay *r) {
        int k = 0, code = 0;

        while (k >= 0 && sd_event_get_state(r->event) != SD_EVENT_FINISHED) {
                if (r->is_stopping && !r->connections && publishing_is_done(r->publishing))
                        (void)sd_event_exit(r->event, 0);
                k = sd_event_run(r->event, UINT64_MAX);
        }
        if (k >= 0)
                k = sd_event_get_exit_code(r->event, &code);
        return k < 0 ? error_origin(k) : code;
}

void relay_stop(Relay *r) {
        r->metrics = metrics_server_stop(r->metrics);
        while (r->connections)
                connection_free(r->connections);
        publishing_free(r->publishing);
        listeners_close(r);
        given_sockets_deinit(&r->given);
        socket_set_close(&r->sockets);
        sd_event_source_disable_unref(r->expiry);
        sd_event_source_disable_unref(r->feeding);
        sd_event_source_disable_unref(r->goodbye);
        sd_event_unref(r->event);
        SSL_CTX_free(r->tls);
        if (r->config)
                relay_config_free(r->config);
        *r = (Relay){ .event = NULL };
}
