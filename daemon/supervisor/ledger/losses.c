/*
 * Who loses samples rings a bell. Main then reads what the kernel and the readers have counted, says what is more than it has said
 * before, and looks again a second later, for as long as something is lost. The decision to doubt is that a look is a cut, as for
 * `status`: the kernel says how much each event has lost only when it is asked, and each reader asks for its own CPU. A look that
 * takes long, with ten thousand events, makes the time until the next one longer.
 */
#include "daemon/supervisor/ledger/losses.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"

#define LOOK_EACH NSEC_PER_SEC
#define LOOK_SHARE 100      /* of the time at most is spent on looking */
#define ACCURACY_USEC 50000 /* of the timer */
#define EVENTS_MAX 16       /* that a look names; the others are said together */

/* What an event has lost since it was said last. */
typedef struct NewLoss {
        const Registration *registration;
        uint64_t total, lost[_LOSS_MAX];
} NewLoss;

/* Those that lost most, and the sum of the others. */
typedef struct Look {
        NewLoss most[EVENTS_MAX];
        size_t n, n_others;
        NewLoss others;
} Look;

static const char *const field_names[] = {
#define LOSS(code, name, help) [LOSS_##code] = "LOST_" #code,
#include "daemon/model/loss.def"
#undef LOSS
};

/* ---- saying it --------------------------------------------------------------------------------------------------- */

static void add_reason(char *text, size_t size, const NewLoss *l, int reason) {
        size_t used = strlen(text);

        (void)snprintf(text + used, size - used, "%s%s %llu", used > 0 ? ", " : "", loss_name((Loss)reason),
                       (unsigned long long)l->lost[reason]);
}

/* What nobody could have avoided is no warning. */
static int priority_of(const NewLoss *l) {
        return l->total > l->lost[LOSS_KERNEL_UNWRITTEN] ? LOG_WARNING : LOG_NOTICE;
}

/* event: NULL, of `n_others` events. */
static void say(const NewLoss *l, const char *event, size_t n_others) {
        char numbers[_LOSS_MAX][LOG_NUMBER_SIZE], reasons[320] = "";
        LogField fields[_LOSS_MAX + 4] = { { "EVENT", event } };
        size_t n = 1;
        int main_reason = 0;

        for (int i = 0; i < _LOSS_MAX; i++) {
                if (l->lost[i] == 0)
                        continue;
                fields[n++] = (LogField){ field_names[i], log_number(numbers[i], l->lost[i]) };
                add_reason(reasons, sizeof(reasons), l, i);
                if (l->lost[i] > l->lost[main_reason])
                        main_reason = i;
        }
        fields[n++] = (LogField){ "LOST", LOG_NUMBER(l->total) };
        fields[n++] = (LogField){ "REASON", loss_name((Loss)main_reason) };
        fields[n] = (LogField){ .name = NULL };
        if (event)
                log_print_with(priority_of(l), MESSAGE_LOST, fields, "%s: %llu sample%s lost: %s", event,
                               (unsigned long long)l->total, l->total == 1 ? "" : "s", reasons);
        else
                log_print_with(priority_of(l), MESSAGE_LOST, fields, "%zu more event%s: %llu sample%s lost: %s", n_others,
                               n_others == 1 ? "" : "s", (unsigned long long)l->total, l->total == 1 ? "" : "s", reasons);
}

static void say_all(const Look *look) {
        for (size_t i = 0; i < look->n; i++)
                say(&look->most[i], look->most[i].registration->event->spec.name, 0);
        if (look->n_others > 0)
                say(&look->others, NULL, look->n_others);
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static void add_to_others(Look *look, const NewLoss *l) {
        look->n_others++;
        look->others.total += l->total;
        for (int i = 0; i < _LOSS_MAX; i++)
                look->others.lost[i] += l->lost[i];
}

/* The list is in order, the most first. */
static void look_add(Look *look, const NewLoss *l) {
        size_t at = look->n;

        if (at == EVENTS_MAX && look->most[at - 1].total >= l->total) {
                add_to_others(look, l);
                return;
        }
        if (at == EVENTS_MAX)
                add_to_others(look, &look->most[--at]);
        else
                look->n++;
        for (; at > 0 && look->most[at - 1].total < l->total; at--)
                look->most[at] = look->most[at - 1];
        look->most[at] = *l;
}

static uint64_t late_of(const DispatcherReport *report, const Event *event) {
        uint64_t sum = 0;

        for (uint32_t slot = 0; slot < event->n_slots && report->n_late > 0; slot++) {
                const LateRow *row = late_rows_find(report->late, report->n_late, event->id, slot);

                sum += row ? row->count : 0;
        }
        return sum;
}

/* Of a reader that does not answer less is known for a while: what was said before stands. */
static void look_at(Look *look, const Ledger *s, Registration *g, const DispatcherReport *report) {
        EventCut now = ledger_event_totals(s, g);
        NewLoss l = { .registration = g };

        for (int i = 0; i < _LOSS_MAX; i++) {
                uint64_t lost = i == LOSS_LATE ? late_of(report, g->event) : now.lost[i];

                if (lost <= g->said_lost[i])
                        continue;
                l.lost[i] = lost - g->said_lost[i];
                l.total += l.lost[i];
                g->said_lost[i] = lost;
        }
        if (l.total > 0)
                look_add(look, &l);
}

/* What came too late only the dispatcher knows. One that does not answer is said elsewhere, and this later. */
static int get_report(Ledger *s, DispatcherReport *report) {
        uint64_t n = counter_get(&s->readers->dispatcher.n_late_samples);
        int r;

        if (n == s->losses.n_late)
                return 0;
        r = readers_report(s->readers, report, NULL);
        if (r == 0)
                s->losses.n_late = n;
        return r < 0 ? r : 0;
}

static int look_at_all(Ledger *s) {
        DispatcherReport report = { .n_subscribers = 0 };
        Look look = { .n = 0 };
        int r = readers_cut_at_once(s->readers, NULL);

        if (r == 0)
                r = get_report(s, &report);
        for (Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                look_at(&look, s, g, &report);
                r = checkpoint(NULL);
        }
        dispatcher_report_deinit(&report);
        say_all(&look);
        return r < 0 ? r : 0;
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Ledger *s = userdata;

        operations_set_due(s->operations, CHANGE_LOSSES);
        return 0;
}

static int set_timer(Ledger *s, nsec_t took) {
        nsec_t wait = LOOK_SHARE * took > LOOK_EACH ? LOOK_SHARE * took : LOOK_EACH;
        int r = error_origin(sd_event_source_set_time_relative(s->losses.timer, wait / NSEC_PER_USEC));

        return r < 0 ? r : error_origin(sd_event_source_set_enabled(s->losses.timer, SD_EVENT_ONESHOT));
}

int ledger_on_losses(void *userdata) {
        Ledger *s = userdata;
        LossBell *bell = &s->losses.bell;
        nsec_t began = clock_now(CLOCK_MONOTONIC);
        int r;

        loss_bell_quiet(bell);
        if (!loss_bell_take(bell) && (loss_bell_arm(bell) || !loss_bell_take(bell)))
                return 0;
        r = look_at_all(s);
        return r < 0 ? r : set_timer(s, clock_now(CLOCK_MONOTONIC) - began);
}

int ledger_say_last_losses(Ledger *s, Registration *const *list, size_t n) {
        const DispatcherReport none = { .n_subscribers = 0 };
        _cleanup_(cut_scope_unrefp) CutScope *scope = NULL;
        Look look = { .n = 0 };
        int r;

        if (!atomic_load(&s->losses.bell.is_noted))
                return 0;
        r = n > 0 ? events_cut_scope(list, n, &scope) : 0;
        if (r == 0)
                r = readers_cut(s->readers, scope);
        for (size_t i = 0; i < n; i++)
                look_at(&look, s, list[i], &none);
        for (Registration *g = n == 0 ? s->events->registrations : NULL; g; g = g->next)
                look_at(&look, s, g, &none);
        say_all(&look);
        return r < 0 ? r : 0;
}

void ledger_add_removed_losses(Ledger *s, const Registration *g) {
        const EventCut t = ledger_event_totals(s, g);

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                s->losses.removed[i] += t.lost[i];
}

int ledger_start_losses(Ledger *s) {
        int r = loss_bell_init(&s->losses.bell);

        if (r == 0)
                r = error_origin(sd_event_add_time(s->operations->event, &s->losses.timer, CLOCK_MONOTONIC, 0,
                                                   ACCURACY_USEC, on_time, s));
        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(s->losses.timer, SD_EVENT_OFF));
        if (r >= 0)
                r = operations_listen(s->operations, CHANGE_LOSSES, s->losses.bell.fd);
        if (r >= 0)
                (void)loss_bell_arm(&s->losses.bell);
        return r < 0 ? r : 0;
}

void ledger_free_losses(Ledger *s) {
        s->losses.timer = sd_event_source_disable_unref(s->losses.timer);
        loss_bell_deinit(&s->losses.bell);
}
