/* The closing ledger of several hosts: a row for each, over all its streams, and their sum. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct HostLoss {
        char *reason; /* malloc */
        uint64_t count;
} HostLoss;

typedef struct HostSum {
        uint64_t printed, received, missed; /* items; of all streams */
        HostLoss *lost; /* malloc: by reason, of the closing ledgers, and what gaps of streams without one have said */
        size_t n_lost;
        bool is_inexact, is_unbalanced; /* one of them at least */
        bool has_end;                   /* the stream that was the last so far has a closing ledger */
        char *reason;                   /* of its end, malloc; NULL: it had none */
        uint64_t disconnected, away;    /* how often, and ns */
} HostSum;

/* NOTE_END and NOTE_SUM of item.h, without the word. */
void host_sum_take_end(HostSum *s, const char *text);
void host_sum_take_sum(HostSum *s, const char *text);
void host_sum_deinit(HostSum *s);

/* counted: what `printed` is called. names, sums, statuses: n of each. JSON on stdout, or a table on stderr. */
void host_ledger_print(Perfctl *p, const char *counted, const char *const *names, const HostSum *const *sums, const int *statuses,
                       size_t n);
