/* A token bucket of CPU time, whose level is a time: how far into the future the share has been used. */
#include "daemon/model/read-budget.h"

#include <stdlib.h>
#include <string.h>

#define TELL_EACH (600 * NSEC_PER_SEC)

ReadBudget *read_budget_new(uint32_t uid, uint32_t n_accounts) {
        size_t size = sizeof(ReadBudget) + n_accounts * sizeof(ReadAccount);
        ReadBudget *b = aligned_alloc(_Alignof(ReadBudget), size);

        if (!b)
                return NULL;
        memset(b, 0, size);
        b->n_refs = 1;
        b->uid = uid;
        b->n_accounts = n_accounts;
        for (uint32_t i = 0; i < n_accounts; i++)
                b->accounts[i].oldest = b->accounts[i].oldest_now = UINT64_MAX;
        return b;
}

ReadBudget *read_budget_ref(ReadBudget *b) {
        if (b)
                atomic_fetch_add_explicit(&b->n_refs, 1, memory_order_relaxed);
        return b;
}

ReadBudget *read_budget_unref(ReadBudget *b) {
        if (b && atomic_fetch_sub_explicit(&b->n_refs, 1, memory_order_acq_rel) == 1)
                free(b);
        return NULL;
}

static nsec_t paid_until(const ReadAccount *a) {
        return atomic_load_explicit(&a->paid_until, memory_order_relaxed);
}

static nsec_t requests_until(const ReadAccount *a) {
        return atomic_load_explicit(&a->requests_until, memory_order_relaxed);
}

bool read_account_permits(ReadAccount *a, uint64_t pass, nsec_t due, nsec_t now) {
        const nsec_t until = paid_until(a);

        if (a->pass != pass) {
                a->pass = pass;
                a->oldest = a->oldest_now;
                a->oldest_now = UINT64_MAX;
        }
        a->is_exhausted = until > now && (a->is_exhausted || until - now > READ_BUDGET_AHEAD);
        if (!a->is_exhausted && due <= a->oldest)
                return true;
        a->oldest_now = due < a->oldest_now ? due : a->oldest_now;
        return false;
}

nsec_t read_account_permits_from(const ReadAccount *a, nsec_t now) {
        return a->is_exhausted && paid_until(a) > now ? paid_until(a) : now;
}

void read_account_charge(ReadAccount *a, nsec_t now, nsec_t spent) {
        const nsec_t until = paid_until(a);

        atomic_store_explicit(&a->paid_until, (until > now ? until : now) + READ_BUDGET_SHARE * spent, memory_order_relaxed);
}

void read_account_charge_request(ReadAccount *a, nsec_t now, nsec_t spent) {
        const nsec_t until = requests_until(a);

        /* pairs with requests_until() of main, which waits for the acknowledgement of what was spent, or takes what it finds */
        atomic_store_explicit(&a->requests_until, (until > now ? until : now) + REQUEST_BUDGET_SHARE * spent, memory_order_relaxed);
}

void read_budget_charge_main(ReadBudget *b, nsec_t now, nsec_t spent) {
        b->main_until = (b->main_until > now ? b->main_until : now) + REQUEST_BUDGET_SHARE_OF_MAIN * spent;
}

/* The one that was used most says when there is time again. */
static nsec_t last_of_requests(const ReadBudget *b) {
        nsec_t last = b->main_until;

        for (uint32_t i = 0; i < b->n_accounts; i++)
                if (requests_until(&b->accounts[i]) > last)
                        last = requests_until(&b->accounts[i]);
        return last;
}

nsec_t read_budget_requests_from(const ReadBudget *b) {
        const nsec_t last = last_of_requests(b);

        return last > REQUEST_BUDGET_AHEAD ? last - REQUEST_BUDGET_AHEAD : 0;
}

bool read_budget_is_to_tell_of_requests(ReadBudget *b, nsec_t now) {
        if (b->requests_told_at > 0 && now - b->requests_told_at < TELL_EACH)
                return false;
        b->requests_told_at = now;
        return true;
}

bool read_budget_is_settled(const ReadBudget *b, nsec_t now) {
        for (uint32_t i = 0; i < b->n_accounts; i++)
                if (paid_until(&b->accounts[i]) > now)
                        return false;
        return last_of_requests(b) <= now;
}

bool read_budget_is_to_tell(ReadBudget *b, nsec_t now) {
        nsec_t told = atomic_load_explicit(&b->told_at, memory_order_relaxed);

        return (told == 0 || now - told >= TELL_EACH) &&
               atomic_compare_exchange_strong_explicit(&b->told_at, &told, now, memory_order_relaxed, memory_order_relaxed);
}
