/*
 * The decision to doubt is that perfd goes on with a dispatcher that does not answer: streams stand still, what is lost
 * meanwhile is counted where it is lost, and all that needs no dispatcher is done. A thread that was stopped for a minute by a
 * debugger goes on, and with it the streams. That it is stuck for good is for the service manager's watchdog, which is not fed
 * while it neither moves nor sleeps.
 */
#include "daemon/supervisor/readers/wait.h"

#include <poll.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/dispatcher/ask.h"
#include "daemon/supervisor/notify/notifier.h"

#define ALONE_MSEC 25 /* nearly all waits are over by then, and nobody comes between */
#define SLICE_MSEC 100
#define SLICE_MOST (2 * SLICE_MSEC * NSEC_PER_MSEC) /* more of it main has not run */
#define STOP_MOST NSEC_PER_SEC /* when perfd is to stop */
#define DISPATCHER_MOST (10 * NSEC_PER_SEC)
#define LOOK_MSEC 10 /* at the answer of the dispatcher, while others are served */

Patience patience_new(void) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        return (Patience){ .began = now, .fed = now };
}

bool patience_is_over(const Readers *s, const Patience *p, nsec_t most) {
        return p->spent >= (s->operations->is_due[CHANGE_STOP] && STOP_MOST < most ? STOP_MOST : most);
}

static int wait_slice(Readers *s, Patience *p, int fd, int msec) {
        nsec_t began = clock_now(CLOCK_MONOTONIC), took;
        bool serves = began - p->began >= ALONE_MSEC * NSEC_PER_MSEC && operations_may_serve(s->operations);
        int loop_fd = serves ? error_origin(sd_event_get_fd(s->operations->event)) : -1;
        struct pollfd polled[] = { { .fd = fd, .events = POLLIN }, { .fd = loop_fd, .events = POLLIN } };
        int r = 0;

        notifier_feed_while_waiting(&p->fed);
        (void)poll(polled, ARRAY_SIZE(polled), serves ? msec : ALONE_MSEC);
        if (serves)
                r = operations_serve(s->operations);
        took = clock_now(CLOCK_MONOTONIC) - began;
        if (!(polled[0].revents & POLLIN))
                p->spent += took < SLICE_MOST ? took : SLICE_MOST;
        return r < 0 ? r : (polled[0].revents & POLLIN) != 0;
}

int readers_wait_slice(Readers *s, Patience *p, int fd) {
        return wait_slice(s, p, fd, SLICE_MSEC);
}

/* ---- the dispatcher ---------------------------------------------------------------------------------------------- */

int readers_refuse_unanswered(const Readers *s, const char *what, Explanation *e) {
        if (s->unanswered.since == 0)
                return 0;
        return refuse(e, REFUSED_UNSUPPORTED, "dispatcher-stalled",
                      "%s needs the dispatcher (tid %d), which has not responded for %llu s: let that thread continue, and try "
                      "again", what,
                      (int)s->dispatcher.thread.tid,
                      (unsigned long long)((clock_now(CLOCK_MONOTONIC) - s->unanswered.since) / NSEC_PER_SEC));
}

static void set_unanswered(Readers *s, nsec_t since, const char *what) {
        char stalled[256];

        if (s->unanswered.since > 0)
                return;
        s->unanswered.since = since;
        readers_say_stalled(s, stalled, sizeof(stalled)); /* one may have been stopped in the dispatcher's work */
        log_print(LOG_ERR, MESSAGE_DISPATCHER_STALLED,
                  "the dispatcher (tid %d) has not responded for %llu s since it was asked %s; it is %s%s%s. perfd continues, and "
                  "refuses what needs the dispatcher: streams pause until it responds again",
                  (int)s->dispatcher.thread.tid, (unsigned long long)((clock_now(CLOCK_MONOTONIC) - since) / NSEC_PER_SEC), what,
                  readers_thread_state(s->dispatcher.thread.tid), stalled[0] ? "; " : "", stalled);
}

void readers_on_dispatcher_answers(Readers *s) {
        if (s->unanswered.since == 0)
                return;
        log_print(LOG_NOTICE, MESSAGE_DISPATCHER_ANSWERS, "the dispatcher responds again, after %llu s",
                  (unsigned long long)((clock_now(CLOCK_MONOTONIC) - s->unanswered.since) / NSEC_PER_SEC));
        s->unanswered.since = 0;
}

/*
 * 1: it has answered. Patience ends with a dispatcher that does nothing, not with one that has much to do: before it answers it
 * takes what readers pushed before, which is bounded by their batches.
 */
static int wait_for_answer(Readers *s, DispatcherAsk *ask, nsec_t most) {
        const struct timespec alone = nsec_timespec(clock_now(CLOCK_MONOTONIC) + ALONE_MSEC * NSEC_PER_MSEC);
        Patience p = patience_new();
        uint64_t seen = 0;
        int r = 0;

        (void)heartbeat_has_moved(&s->dispatcher.heartbeat, &seen);
        while (sem_clockwait(&ask->done, CLOCK_MONOTONIC, &alone) < 0)
                if (errno == ETIMEDOUT &&
                    (r < 0 || patience_is_over(s, &p, s->operations->is_stopping ? DISPATCHER_STOP_MOST : most)))
                        return r;
                else if (errno == ETIMEDOUT) {
                        r = wait_slice(s, &p, -1, LOOK_MSEC);
                        if (heartbeat_has_moved(&s->dispatcher.heartbeat, &seen))
                                p.spent = 0;
                }
        /* pairs with dispatcher_ask_answer(), also for ThreadSanitizer, which does not know sem_clockwait(3) */
        (void)atomic_load_explicit(&ask->state, memory_order_acquire);
        readers_on_dispatcher_answers(s);
        if (r >= 0)
                return 1;
        sem_post(&ask->done); /* for dispatcher_ask_leave() */
        return r;
}

static DispatcherAsk *ask_dispatcher(Readers *s, DispatcherCommand asked) {
        DispatcherCommand *command = malloc(sizeof(*command));
        DispatcherAsk *ask;

        if (!command)
                return NULL;
        *command = asked;
        ask = dispatcher_ask_new(command);
        if (ask)
                dispatcher_post(&s->dispatcher, command);
        else
                free(command);
        return ask;
}

/* ret: NULL, or for what it says. 1: it does not answer. */
static int ask_for(Readers *s, DispatcherCommandKind kind, const char *what, DispatcherReport *ret) {
        nsec_t began = clock_now(CLOCK_MONOTONIC);
        DispatcherAsk *ask;
        int r;

        if (s->unanswered.since > 0)
                return 1;
        ask = ask_dispatcher(s, (DispatcherCommand){ .kind = kind, .cut = s->n_cuts });
        if (!ask)
                return error_origin(-ENOMEM);
        r = wait_for_answer(s, ask, DISPATCHER_MOST);
        if (r > 0 && ret) {
                *ret = ask->report;
                ask->report = (DispatcherReport){ .n_subscribers = 0 };
        }
        if (r > 0)
                dispatcher_ask_free(ask);
        else if (dispatcher_ask_leave(ask) && r == 0) /* else it has answered just now, and says nothing any more */
                set_unanswered(s, began, what);
        return r < 0 ? r : r == 0;
}

int readers_report(Readers *s, DispatcherReport *ret, Explanation *e) {
        int r = ask_for(s, DISPATCHER_REPORT, "for its rows of the ledger", ret);

        if (r < 0)
                return r;
        if (r == 0)
                return ret->subscribers && ret->late ? 0 : error_origin(-ENOMEM);
        r = readers_refuse_unanswered(s, "a ledger", e);
        return r ? r : refuse(e, REFUSED_UNSUPPORTED, "dispatcher-stalled", "the dispatcher was slow to respond: try again");
}

/* A moment, in which nobody else is served. */
static bool answers_at_once(DispatcherAsk *ask) {
        const struct timespec end = nsec_timespec(clock_now(CLOCK_MONOTONIC) + ALONE_MSEC * NSEC_PER_MSEC);

        while (sem_clockwait(&ask->done, CLOCK_MONOTONIC, &end) < 0)
                if (errno == ETIMEDOUT)
                        return false;
        (void)atomic_load_explicit(&ask->state, memory_order_acquire); /* as wait_for_answer() */
        return true;
}

int readers_look_at_dispatcher(Readers *s) {
        const char *what = "whether it continues";
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        if (s->unanswered.since > 0)
                return 0;
        if (!s->unanswered.look) {
                s->unanswered.look = ask_dispatcher(s, (DispatcherCommand){ .kind = DISPATCHER_PING });
                s->unanswered.looked = now;
                (void)heartbeat_has_moved(&s->dispatcher.heartbeat, &s->unanswered.seen);
        }
        if (!s->unanswered.look)
                return error_origin(-ENOMEM);
        if (answers_at_once(s->unanswered.look)) {
                dispatcher_ask_free(TAKE_PTR(s->unanswered.look));
                readers_on_dispatcher_answers(s);
        } else if (heartbeat_has_moved(&s->dispatcher.heartbeat, &s->unanswered.seen))
                s->unanswered.looked = now;
        else if (now - s->unanswered.looked >= DISPATCHER_MOST) {
                nsec_t since = s->unanswered.looked;

                if (dispatcher_ask_leave(TAKE_PTR(s->unanswered.look))) /* it tells when it answers */
                        set_unanswered(s, since, what);
        }
        return 0;
}

void readers_end_look(Readers *s) {
        if (s->unanswered.look)
                (void)dispatcher_ask_leave(TAKE_PTR(s->unanswered.look));
}

int readers_ask_pipe(Readers *s, DispatcherCommandKind kind, uint32_t slot) {
        const char *what = kind == DISPATCHER_PIPE_ON ? "to serve a batch pipe" : "to leave a batch pipe";
        nsec_t began = clock_now(CLOCK_MONOTONIC);
        DispatcherAsk *ask = ask_dispatcher(s, (DispatcherCommand){ .kind = kind, .slot = slot, .at = clock_now(s->attr.clock) });
        int r = 0;

        if (!ask)
                return error_origin(-ENOMEM);
        while (r == 0) {
                r = wait_for_answer(s, ask, DISPATCHER_MOST);
                if (r == 0)
                        set_unanswered(s, began, what);
                if (r == 0 && s->operations->is_due[CHANGE_STOP])
                        r = error_origin_of(-ETIMEDOUT, "the dispatcher, which was asked %s", what);
        }
        if (r > 0)
                dispatcher_ask_free(ask);
        else
                (void)dispatcher_ask_leave(ask);
        return r < 0 ? r : 0;
}
