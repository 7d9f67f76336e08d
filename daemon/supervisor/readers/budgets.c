/*
 * One for each uid whose events are read or whose requests ask readers for something, and for as long after the last one as what was
 * spent is not within its share again: who removes its events and adds others has no other budget.
 */
#include "daemon/supervisor/readers/budgets.h"

#include "daemon/base/log.h"

static void forget_settled(Readers *s, nsec_t now) {
        for (ReadBudget **p = &s->budgets; *p;) {
                ReadBudget *b = *p;

                /* other references come from this list alone: what has none has no reader either */
                if (atomic_load_explicit(&b->n_refs, memory_order_acquire) > 1 || !read_budget_is_settled(b, now)) {
                        p = &b->next;
                        continue;
                }
                *p = b->next;
                read_budget_unref(b);
        }
}

static ReadBudget *find_budget(const Readers *s, uint32_t uid) {
        ReadBudget *b = s->budgets;

        while (b && b->uid != uid)
                b = b->next;
        return b;
}

ReadBudget *readers_budget_of(Readers *s, uint32_t uid) {
        ReadBudget *b = find_budget(s, uid);

        thread_assert(THREAD_MAIN);
        if (b)
                return b;
        forget_settled(s, clock_now(CLOCK_MONOTONIC));
        b = read_budget_new(uid, (uint32_t)s->n_cpus);
        if (!b)
                return NULL;
        b->next = s->budgets;
        return s->budgets = b;
}

uint64_t readers_charge(Readers *s, uint64_t uid) {
        uint64_t before = s->charged;

        s->charged = uid;
        return before;
}

static ReadBudget *budget_of_request(Readers *s) {
        uint64_t uid = s->charged;

        if (uid == BUDGET_OF_REQUEST && !operations_uid(s->operations, &uid))
                return NULL;
        return uid > 0 ? readers_budget_of(s, (uint32_t)uid) : NULL;
}

ReadBudget *readers_charged(Readers *s) {
        return read_budget_ref(budget_of_request(s));
}

MainWork readers_begin_main(const Readers *s) {
        return (MainWork){ .began = clock_now(CLOCK_THREAD_CPUTIME_ID), .served = s->operations->served };
}

void readers_end_main(Readers *s, MainWork work) {
        const nsec_t spent = clock_now(CLOCK_THREAD_CPUTIME_ID) - work.began - (s->operations->served - work.served);
        ReadBudget *b = budget_of_request(s);

        if (b)
                read_budget_charge_main(b, clock_now(CLOCK_MONOTONIC), spent);
}

/* perfd's own line, or who fills its log would keep it out. */
static void tell_of_requests(uid_t uid) {
        const LogCause before = log_charge(LOG_CAUSE_NOBODY);

        log_print(LOG_WARNING, MESSAGE_REQUESTS_POSTPONED,
                  "what requests of uid %u ask of readers takes more than %d %% of a CPU, or they begin streams too often, and they "
                  "are postponed: request less often, count fewer events, or processes with fewer children", (unsigned)uid,
                  100 / REQUEST_BUDGET_SHARE);
        (void)log_charge(before);
}

bool readers_postpone(void *userdata, uid_t uid, nsec_t now, nsec_t *ret_until) {
        Readers *s = userdata;
        ReadBudget *b = uid > 0 ? find_budget(s, uid) : NULL;
        nsec_t until = b ? read_budget_requests_from(b) : 0;

        if (until <= now)
                return false;
        if (uid != (uid_t)BUDGET_OF_ALL && read_budget_is_to_tell_of_requests(b, now))
                tell_of_requests(uid);
        *ret_until = until;
        return true;
}

void readers_free_budgets(Readers *s) {
        for (ReadBudget *next; s->budgets; s->budgets = next) {
                next = s->budgets->next;
                read_budget_unref(s->budgets);
        }
}
