/*
 * How much of the CPU time of readers is spent for one uid, measured, because what a read(2) of a counter costs is not known before:
 * with attr.inherit Linux adds the counts of all children. A budget has an account for each reader, written by it alone, and is
 * shared by all snapshots for as long as one has an event of the uid.
 *
 * Periodic reads have one share of it, and what requests make readers do another: their cuts, snapshots and switches. Beyond the
 * first, reads are postponed by readers; beyond the second, requests are by main, which measures for it also what it does itself
 * that others wait for.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"

#define READ_BUDGET_SHARE 20                   /* one part of so many: of the time of each CPU */
#define READ_BUDGET_AHEAD (50 * NSEC_PER_MSEC) /* the share of so much time may be used at once */
#define REQUEST_BUDGET_SHARE 10            /* the same of what requests make a reader do */
#define REQUEST_BUDGET_AHEAD NSEC_PER_SEC
#define REQUEST_BUDGET_SHARE_OF_MAIN 5     /* and main */

/* Of one reader. Times are of CLOCK_MONOTONIC. */
typedef struct ReadAccount {
        _Alignas(64) _Atomic(nsec_t) paid_until; /* what was spent is the share of the time until then; read by main */
        uint64_t pass;     /* Reader.read_pass when it was looked at last */
        nsec_t oldest, oldest_now; /* the lowest time of a read that was postponed in the pass before, and in this; UINT64_MAX: none was */
        bool is_exhausted; /* until paid_until: so that one does not wake for each read that there is time for again */
        _Atomic(nsec_t) requests_until; /* as paid_until: what requests made it do */
} ReadAccount;

typedef struct ReadBudget {
        _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel */
        struct ReadBudget *next;  /* main's list */
        uint32_t uid;
        _Atomic(nsec_t) told_at;  /* CLOCK_MONOTONIC: when the log last said that reads are postponed; 0: never */
        nsec_t main_until;        /* main's, as the next: as requests_until, of main itself */
        nsec_t requests_told_at;  /* as told_at, of requests */
        uint32_t n_accounts;
        ReadAccount accounts[];   /* by slot */
} ReadBudget;

/* With one reference, and nothing spent. NULL: no memory. */
ReadBudget *read_budget_new(uint32_t uid, uint32_t n_accounts);
ReadBudget *read_budget_ref(ReadBudget *b);
ReadBudget *read_budget_unref(ReadBudget *b);
DEFINE_CLEANUP(ReadBudget *, read_budget_unref)
/*
 * By the reader, before a read that was due at `due`, in any clock: whether there is time for it, and no other one has waited for
 * longer. `pass` is another one each time that all events are looked at.
 */
bool read_account_permits(ReadAccount *a, uint64_t pass, nsec_t due, nsec_t now);
/* What is postponed is to be tried again at this time. */
nsec_t read_account_permits_from(const ReadAccount *a, nsec_t now);
/* By the reader, after it: so much CPU time was spent. */
void read_account_charge(ReadAccount *a, nsec_t now, nsec_t spent);
/* By the reader, after what a request made it do. */
void read_account_charge_request(ReadAccount *a, nsec_t now, nsec_t spent);
/* By main, after what a request made it do. */
void read_budget_charge_main(ReadBudget *b, nsec_t now, nsec_t spent);
/* By main: requests of the uid wait until then; it may be over already. */
nsec_t read_budget_requests_from(const ReadBudget *b);
/* By main: true once in ten minutes, for whom the log is to say that requests wait. */
bool read_budget_is_to_tell_of_requests(ReadBudget *b, nsec_t now);
/* By main: true if all that was spent is within the share of the time until now. */
bool read_budget_is_settled(const ReadBudget *b, nsec_t now);
/* By any reader: true once in ten minutes, for whom the log is to say it. */
bool read_budget_is_to_tell(ReadBudget *b, nsec_t now);
