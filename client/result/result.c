/*
 * Answers as rows. A row is a plain structure that points into the message: nobody who prints a table wants a function
 * call for each column, and the library alone makes rows, so that they can grow at their end.
 */
#include "client/result/result.h"

#include <errno.h>
#include <stdlib.h>

#include "client/item/descriptor.h"
#include "client/wire/event-spec.h"

/* NULL in *ret: the connection has none. */
static int add_limit(perfd_result *result, const Perfd__V1__Limit *m, const perfd_limit **ret) {
        perfd_limit *row = arena_push(&result->arena, 1, sizeof(*row));

        if (!row)
                return -ENOMEM;
        if (m)
                *row = (perfd_limit){
                        .name = m->name,
                        .status = m->status,
                        .subscribe = m->events,
                        .n_subscribe = m->n_events,
                        .where = m->where,
                        .raw = m->raw,
                        .queue_bytes = m->queue_bytes,
                };
        *ret = m ? row : NULL;
        return 0;
}

/* NULL in *ret: the daemon is older. */
static int add_access(perfd_result *result, const Perfd__V1__Access *m, const perfd_access **ret) {
        perfd_access *row = arena_push(&result->arena, 1, sizeof(*row));
        const perfd_limit *limit = NULL;

        if (!row || (m && add_limit(result, m->limit, &limit) < 0))
                return -ENOMEM;
        if (m)
                *row = (perfd_access){
                        .is_limited = m->limited,
                        .rule = m->rule,
                        .place = m->place,
                        .status = m->status,
                        .subscribe = m->subscribe,
                        .n_subscribe = m->n_subscribe,
                        .where = m->where,
                        .emit = m->emit,
                        .n_emit = m->n_emit,
                        .stat = m->stat,
                        .own_processes = m->own_processes,
                        .limit = limit,
                };
        *ret = m ? row : NULL;
        return 0;
}

static int add_status(perfd_result *result, const Perfd__V1__StatusReply *m) {
        perfd_status_row *row = arena_push(&result->arena, 1, sizeof(*row));
        perfd_cpu_row *cpus = arena_push(&result->arena, m->n_cpus, sizeof(*cpus));
        const perfd_access *access = NULL;

        if (!row || !cpus || add_access(result, m->access, &access) < 0)
                return -ENOMEM;
        *row = (perfd_status_row){
                .version = m->version,
                .pid = m->pid,
                .uptime = m->uptime,
                .clock = m->clock,
                .kernel = m->kernel,
                .config = m->config,
                .n_events = m->n_events,
                .n_enabled = m->n_enabled,
                .n_subscribers = m->n_subscribers,
                .n_connections = m->n_connections,
                .ring_size = m->ring_size,
                .rss = m->rss,
                .n_fds = m->n_fds,
                .n_samples = m->n_samples,
                .n_lost = m->n_lost,
                .loss_exact = m->loss_exact,
                .n_closing = m->n_closing,
                .n_fallen_back = m->n_fallen_back,
                .n_pending = m->n_pending,
                .dispatcher_stalled = m->dispatcher_stalled,
                .n_tasks_forgotten = m->n_tasks_forgotten,
                .n_losses = m->n_losses,
                .access = access,
                .applied = m->applied,
                .config_read = m->config_read,
                .config_changed = m->config_changed,
                .applied_without = m->applied_without,
                .time = m->time,
                .state_unstored = m->state_unstored,
        };
        if (result_counts_new(&result->arena, m->losses, m->n_losses, &row->losses) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_cpus; i++)
                cpus[i] = (perfd_cpu_row){
                        .cpu = m->cpus[i]->cpu,
                        .n_records = m->cpus[i]->n_records,
                        .n_wakeups = m->cpus[i]->n_wakeups,
                        .n_batches = m->cpus[i]->n_batches,
                        .cpu_time = m->cpus[i]->cpu_time,
                        .n_pool_waits = m->cpus[i]->n_pool_waits,
                        .n_failovers = m->cpus[i]->n_failovers,
                        .stalled = m->cpus[i]->stalled,
                };
        result->settings = result_differences_new(&result->arena, m->needs_restart, m->n_needs_restart);
        if (!result->settings)
                return -ENOMEM;
        result->n_settings = m->n_needs_restart;
        result->status = row;
        result->cpus = cpus;
        result->n_cpus = m->n_cpus;
        return 0;
}

static int add_events(perfd_result *result, const Perfd__V1__ListReply *m) {
        static const Perfd__V1__EventSpec nothing = PERFD__V1__EVENT_SPEC__INIT;
        perfd_event_row *rows = arena_push(&result->arena, m->n_events, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_events; i++) {
                const Perfd__V1__EventState *e = m->events[i];
                int r;

                rows[i] = (perfd_event_row){
                        .id = e->id,
                        .spec = spec_decode(e->spec ? e->spec : &nothing, &result->arena),
                        .enabled = e->enabled,
                        .configured = e->configured,
                        .n_fds = e->n_fds,
                        .delivered = e->delivered,
                        .lost = e->lost,
                        .fallen_back = e->fallen_back,
                        .place = e->place,
                        .n_targets = e->n_targets,
                        .n_ended = e->n_ended,
                        .n_postponed = e->n_postponed,
                        .persistent = e->persistent,
                        .temporary = e->while_connected,
                        .limited = e->limited,
                        .pending = e->pending,
                        .absent = e->absent,
                        .n_fields = e->n_fields,
                        .has_uid = e->spec && e->spec->added_by_case == PERFD__V1__EVENT_SPEC__ADDED_BY_UID,
                        .uid = e->spec ? e->spec->uid : 0,
                        .n_losses = e->n_losses,
                };
                if (!rows[i].spec || result_counts_new(&result->arena, e->losses, e->n_losses, &rows[i].losses) < 0)
                        return -ENOMEM;
                r = fields_new(&result->arena, e->fields, e->n_fields, &rows[i].fields);
                if (r != 0)
                        return r;
        }
        result->events = rows;
        result->n_events = m->n_events;
        return 0;
}

static int add_available(perfd_result *result, const Perfd__V1__AvailableReply *m) {
        perfd_available_row *rows = arena_push(&result->arena, m->n_events, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_events; i++) {
                const Perfd__V1__AvailableEvent *e = m->events[i];
                int r;

                rows[i] = (perfd_available_row){
                        .event = e->event, .kind = e->kind, .n_fields = e->n_fields, .help = e->help, .unit = e->unit
                };
                r = fields_new(&result->arena, e->fields, e->n_fields, &rows[i].fields);
                if (r != 0)
                        return r;
        }
        result->available = rows;
        result->n_available = m->n_events;
        result->truncated = m->truncated;
        return 0;
}

static int add_refs(perfd_result *result, Perfd__V1__EventRef *const *refs, size_t n) {
        perfd_ref_row *rows = arena_push(&result->arena, n, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                rows[i] = (perfd_ref_row){ .id = refs[i]->id, .name = refs[i]->name };
        result->refs = rows;
        result->n_refs = n;
        return 0;
}

static const perfd_diagnostic_row *diagnostics_new(Arena *arena, Perfd__V1__ConfigDiagnostic *const *m, size_t n) {
        perfd_diagnostic_row *rows = arena_push(arena, n, sizeof(*rows));

        for (size_t i = 0; rows && i < n; i++)
                rows[i] = (perfd_diagnostic_row){
                        .path = m[i]->path, .line = m[i]->line, .column = m[i]->column, .text = m[i]->text, .reason = m[i]->reason
                };
        return rows;
}

static int add_diagnostics(perfd_result *result, const Perfd__V1__ValidateReply *m) {
        result->errors = diagnostics_new(&result->arena, m->errors, m->n_errors);
        result->warnings = diagnostics_new(&result->arena, m->warnings, m->n_warnings);
        if (!result->errors || !result->warnings)
                return -ENOMEM;
        result->n_errors = m->n_errors;
        result->n_warnings = m->n_warnings;
        return 0;
}

static int add_reload(perfd_result *result, const Perfd__V1__ReloadReply *m) {
        perfd_reload_row *row = arena_push(&result->arena, 1, sizeof(*row));

        if (!row)
                return -ENOMEM;
        *row = (perfd_reload_row){
                .added = m->added, .removed = m->removed, .changed = m->changed, .kept = m->kept,
                .pending = m->pending, .ring_size = m->ring_size,
        };
        result->reload = row;
        result->settings = result_differences_new(&result->arena, m->settings, m->n_settings);
        if (!result->settings)
                return -ENOMEM;
        result->n_settings = m->n_settings;
        return 0;
}

static int add_emitted(perfd_result *result, const Perfd__V1__EmitReply *m) {
        perfd_emitted_row *row = arena_push(&result->arena, 1, sizeof(*row));

        if (!row)
                return -ENOMEM;
        *row = (perfd_emitted_row){ .taken = m->taken, .late = m->late, .lost = m->lost };
        result->emitted = row;
        return 0;
}

static int add_doctor(perfd_result *result, const Perfd__V1__DoctorReply *m) {
        perfd_doctor_row *rows = arena_push(&result->arena, m->n_rows, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_rows; i++)
                rows[i] = (perfd_doctor_row){
                        .topic = m->rows[i]->topic,
                        .what = m->rows[i]->what,
                        .works = m->rows[i]->works,
                        .found = m->rows[i]->found,
                        .remedy = m->rows[i]->remedy,
                };
        result->doctors = rows;
        result->n_doctors = m->n_rows;
        return 0;
}

static int add_rows(perfd_result *result, const Perfd__V1__Response *m) {
        switch (m->body_case) {
        case PERFD__V1__RESPONSE__BODY_DAEMON:
                return add_status(result, m->daemon);
        case PERFD__V1__RESPONSE__BODY_LIST:
                return add_events(result, m->list);
        case PERFD__V1__RESPONSE__BODY_AVAILABLE:
                return add_available(result, m->available);
        case PERFD__V1__RESPONSE__BODY_ADDED:
                result->notes = m->added->notes;
                result->n_notes = m->added->n_notes;
                return add_refs(result, m->added->events, m->added->n_events);
        case PERFD__V1__RESPONSE__BODY_SELECTED:
                result->notes = m->selected->notes;
                result->n_notes = m->selected->n_notes;
                return add_refs(result, m->selected->events, m->selected->n_events);
        case PERFD__V1__RESPONSE__BODY_LEDGER:
                return result_add_ledger(result, m->ledger);
        case PERFD__V1__RESPONSE__BODY_VALIDATED:
                return add_diagnostics(result, m->validated);
        case PERFD__V1__RESPONSE__BODY_RELOADED:
                result->notes = m->reloaded->notes;
                result->n_notes = m->reloaded->n_notes;
                return add_reload(result, m->reloaded);
        case PERFD__V1__RESPONSE__BODY_EMITTED:
                return add_emitted(result, m->emitted);
        case PERFD__V1__RESPONSE__BODY_DOCTOR:
                return add_doctor(result, m->doctor);
        case PERFD__V1__RESPONSE__BODY_PLAN:
                return result_add_plan(result, m->plan);
        case PERFD__V1__RESPONSE__BODY_KERNEL_NAMES:
                return result_add_kernel_names(result, m->kernel_names);
        case PERFD__V1__RESPONSE__BODY_EVENT_FORMATS:
                return result_add_event_formats(result, m->event_formats);
        default:
                return 0;
        }
}

int result_new(Perfd__V1__ServerMessage *message, perfd_result **ret_result) {
        perfd_result *result = calloc(1, sizeof(*result));
        int r;

        if (!result) {
                perfd__v1__server_message__free_unpacked(message, NULL);
                return -ENOMEM;
        }
        result->message = message;
        r = add_rows(result, message->response);
        if (r != 0)
                perfd_result_free(result);
        else
                *ret_result = result;
        return r;
}

int result_new_ledger(const Perfd__V1__Ledger *ledger, perfd_result **ret_result) {
        perfd_result *result = calloc(1, sizeof(*result));

        if (!result)
                return -ENOMEM;
        if (result_add_ledger(result, ledger) < 0) {
                perfd_result_free(result);
                return -ENOMEM;
        }
        *ret_result = result;
        return 0;
}

void perfd_result_free(perfd_result *result) {
        if (!result)
                return;
        arena_deinit(&result->arena);
        if (result->message)
                perfd__v1__server_message__free_unpacked(result->message, NULL);
        if (result->packet)
                perfd__v1__packet__free_unpacked(result->packet, NULL);
        free(result);
}

const perfd_status_row *perfd_result_status(const perfd_result *result) {
        return result->status;
}

const perfd_format_host *perfd_result_format_host(const perfd_result *result) {
        return result->format_host;
}

const perfd_reload_row *perfd_result_reload(const perfd_result *result) {
        return result->reload;
}

const perfd_emitted_row *perfd_result_emitted(const perfd_result *result) {
        return result->emitted;
}

/* Every kind of row has the same accessor. */
#define ROW(name, Type, rows)                                                                                          \
        const Type *perfd_result_##name(const perfd_result *result, size_t i) {                                        \
                return i < result->n_##rows ? &result->rows[i] : NULL;                                                 \
        }

ROW(cpu, perfd_cpu_row, cpus)
ROW(event, perfd_event_row, events)
ROW(available, perfd_available_row, available)
ROW(ref, perfd_ref_row, refs)
ROW(error, perfd_diagnostic_row, errors)
ROW(warning, perfd_diagnostic_row, warnings)
ROW(event_ledger, perfd_event_ledger, event_ledgers)
ROW(ring_ledger, perfd_ring_ledger, ring_ledgers)
ROW(subscriber_ledger, perfd_subscriber_ledger, subscriber_ledgers)
ROW(probe_ledger, perfd_probe_ledger, probe_ledgers)
ROW(doctor, perfd_doctor_row, doctors)
ROW(planned, perfd_planned_row, planned)
ROW(setting, perfd_difference, settings)
ROW(kernel_name, perfd_kernel_name, kernel_names)
ROW(event_format, perfd_event_format, event_formats)

const char *perfd_result_note(const perfd_result *result, size_t i) {
        return i < result->n_notes ? result->notes[i] : NULL;
}

bool perfd_result_is_truncated(const perfd_result *result) {
        return result->truncated;
}

bool perfd_result_is_limited(const perfd_result *result) {
        return result->limited;
}

bool perfd_result_is_balanced(const perfd_result *result) {
        return result->balanced;
}

bool perfd_result_is_loss_exact(const perfd_result *result) {
        return result->loss_exact;
}
