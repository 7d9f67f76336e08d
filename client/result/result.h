/* For the library: a result is the daemon's message and rows that point into it. */
#pragma once

#include "client/perfd.h"
#include "client/wire/arena.h"
#include "proto/perfd.pb-c.h"

struct perfd_result {
        Arena arena;
        Perfd__V1__ServerMessage *message; /* NULL for a closing ledger, whose message is the stream's */
        Perfd__V1__Packet *packet; /* of a relay; else NULL */
        const perfd_relay_status *relay_status;
        const perfd_route_status *route_statuses;
        const perfd_status_row *status;
        const perfd_reload_row *reload;
        const perfd_emitted_row *emitted;
        const perfd_cpu_row *cpus;
        const perfd_event_row *events;
        const perfd_available_row *available;
        const perfd_ref_row *refs;
        const perfd_diagnostic_row *errors, *warnings;
        const perfd_event_ledger *event_ledgers;
        const perfd_ring_ledger *ring_ledgers;
        const perfd_subscriber_ledger *subscriber_ledgers;
        const perfd_probe_ledger *probe_ledgers;
        const perfd_doctor_row *doctors;
        const perfd_planned_row *planned;
        const perfd_difference *settings;
        const perfd_kernel_name *kernel_names;
        const perfd_event_format *event_formats;
        const perfd_format_host *format_host;
        char *const *notes;
        size_t n_notes, n_cpus, n_events, n_available, n_refs, n_errors, n_warnings, n_event_ledgers, n_ring_ledgers,
                n_subscriber_ledgers, n_probe_ledgers, n_doctors, n_planned, n_settings, n_route_statuses,
                n_kernel_names, n_event_formats;
        bool truncated, limited, balanced, loss_exact;
};

/* Takes the message, also when it fails. -ENOMEM, PERFD_E_PROTOCOL. */
int result_new(Perfd__V1__ServerMessage *message, perfd_result **ret_result);
/* A ledger alone; the message stays the caller's and has to live longer. -ENOMEM. */
int result_new_ledger(const Perfd__V1__Ledger *ledger, perfd_result **ret_result);

/* plan.c: rows of differences, whose texts stay the messages'. NULL: no memory. */
const perfd_difference *result_differences_new(Arena *arena, Perfd__V1__Difference *const *m, size_t n);
/* Fills planned rows and settings. -ENOMEM. */
int result_add_plan(perfd_result *result, const Perfd__V1__PlanReply *m);

/* kernel-names.c: -ENOMEM. */
int result_add_kernel_names(perfd_result *result, const Perfd__V1__KernelNamesReply *m);

/* event-formats.c: -ENOMEM. */
int result_add_event_formats(perfd_result *result, const Perfd__V1__EventFormatsReply *m);

/* ledger.c: fills the four kinds of ledger rows and balances them. -ENOMEM. */
int result_add_ledger(perfd_result *result, const Perfd__V1__Ledger *ledger);
/* The reasons stay the messages'. -ENOMEM. */
int result_counts_new(Arena *arena, Perfd__V1__Count *const *messages, size_t n, const perfd_count **ret);
/* Of a closing one: what its stream did not get. -ENOMEM. */
int result_sum_losses(perfd_result *result, const perfd_count **ret, size_t *ret_n);
