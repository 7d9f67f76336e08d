/* For the supervisor: where every sample went, put together from its own numbers, the readers' and the dispatcher's. */
#pragma once

#include "daemon/supervisor/ledger/base.h"
#include "daemon/supervisor/events/events.h"
#include "daemon/supervisor/ledger/losses.h"
#include "daemon/supervisor/ledger/removed.h"

typedef struct Ledger {
        Settings *settings;
        Host *host;
        Operations *operations;
        Readers *readers;
        Events *events;

        Losses losses;
        size_t base_bytes;     /* of the numbers at which streams began */
        RemovedEvents removed; /* since the oldest stream began */
} Ledger;

/* A stream that ends. */
typedef struct LedgerStream {
        uint64_t id;
        const LedgerBase *base; /* where the numbers stood when it began; NULL: not known */
        LedgerWants wants;
        bool has_records;       /* it has asked for side records */
        bool is_limited;        /* its rule has a predicate: ledger_limit() */
} LedgerStream;

/* What a ledger is of. */
typedef struct LedgerScope LedgerScope;
struct LedgerScope {
        bool is_all;        /* all events; else: */
        const uint32_t *ids; /* of these, sorted; borrowed */
        size_t n_ids;
        const LedgerStream *stream; /* NULL, or whose end it is for: then of what it has asked for; else with rows of subscribers: */
        bool (*has_subscriber)(const void *userdata, const LedgerScope *scope, uint64_t id); /* it gets one of these events */
        const void *userdata;
        bool is_unreported; /* the dispatcher did not answer: what was late is not known, and no row is exact */
};

/*
 * Of these events, or, without names, of all; with rows of their subscribers, for which LedgerScope.has_subscriber is asked. Refused: a
 * name means none, the dispatcher does not answer.
 */
int ledger_answer(Ledger *s, char *const *names, size_t n_names,
                  bool (*has_subscriber)(const void *userdata, const LedgerScope *scope, uint64_t id), const void *userdata,
                  Perfd__V1__Ledger **ret, Explanation *e);
/* After a cut and a report. What was begun of it is freed on failure. Refused: as ledger_add_events(). -ENOMEM */
int ledger_make(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, Perfd__V1__Ledger **ret);
/* supervisor/ledger/scope.c: as LedgerScope has them. */
void ledger_sort_ids(uint32_t *ids, size_t n);
bool ledger_has(const LedgerScope *scope, const Event *event);
/* Whether it has a row in the ledger for this CPU. */
bool registration_has_slot(const Registration *g, uint32_t slot);
EventCut ledger_event_totals(const Ledger *s, const Registration *r);
