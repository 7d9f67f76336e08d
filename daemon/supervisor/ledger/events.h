/* For the ledger: its rows of events. */
#pragma once

#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"

/*
 * Of all events of the scope on all CPUs where they have been. Others are served meanwhile; refused: as by checkpoint(), if it is not
 * of a stream. -ENOMEM; what was made belongs to the ledger.
 */
int ledger_add_events(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, Perfd__V1__Ledger *ledger);
/* Of one that is no more, behind the others. -ENOMEM */
int ledger_add_removed_event(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, const RemovedEvent *e,
                             Perfd__V1__Ledger *ledger);
/* Whether they add up. */
bool ledger_numbers(const Ledger *s, const DispatcherReport *report, const Event *event, uint32_t slot, LedgerNumbers *ret);
/* n counts with their names. -ENOMEM: as many as *ret_n says. */
int ledger_counts_new(const uint64_t *values, const char *const *names, size_t n, Perfd__V1__Count ***ret, size_t *ret_n);
/* Of EventCut.lost, those that are not 0. Likewise. */
int ledger_some_losses_new(const uint64_t *lost, Perfd__V1__Count ***ret, size_t *ret_n);
