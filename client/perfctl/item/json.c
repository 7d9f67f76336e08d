/*
 * Items as JSON. A number stays a number, whatever it is called: what the format calls it stands beside `fields` in
 * `names`, under the same key. So a field has one type in every item of a stream, and jq(1) can ask for either.
 */
#include "client/perfctl/item/print.h"

#include <stdlib.h>

#include "client/perfctl/item/parts.h"
#include "client/perfctl/item/plain-json.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"

const char *record_name(perfd_record record) {
        static const char *const names[] = {
                [PERFD_SAMPLE] = "sample", [PERFD_COMM] = "comm", [PERFD_FORK] = "fork", [PERFD_EXIT] = "exit",
                [PERFD_MMAP2] = "mmap2", [PERFD_LOST] = "lost", [PERFD_LOST_SAMPLES] = "lost_samples",
                [PERFD_THROTTLE] = "throttle", [PERFD_UNTHROTTLE] = "unthrottle", [PERFD_SWITCH] = "switch",
                [PERFD_NAMESPACES] = "namespaces", [PERFD_KSYMBOL] = "ksymbol", [PERFD_BPF_EVENT] = "bpf_event",
                [PERFD_CGROUP] = "cgroup", [PERFD_TEXT_POKE] = "text_poke", [PERFD_AUX] = "aux",
                [PERFD_ITRACE_START] = "itrace_start", [PERFD_AUX_OUTPUT_HW_ID] = "aux_output_hw_id",
                [PERFD_READ] = "read", [PERFD_UNKNOWN] = "unknown",
        };

        return names[record];
}

static void put_number(Json *j, const perfd_field *f, uint64_t number) {
        if (f->kind == PERFD_SIGNED)
                json_put_signed(j, (int64_t)number);
        else if (f->kind == PERFD_BOOL && number <= 1)
                json_put_bool(j, number);
        else
                json_put_number(j, number);
}

void value_put_json(Json *j, const perfd_value *v) {
        switch (v->field->kind) {
        case PERFD_TEXT:
                if (v->fault)
                        json_put_null(j);
                else
                        json_put_text(j, v->text);
                return;
        case PERFD_BYTES:
                json_put_hex_bytes(j, v->text);
                return;
        default:
                break;
        }
        if (v->field->count == 1) {
                put_number(j, v->field, v->numbers[0]);
                return;
        }
        json_begin(j, '[');
        for (size_t i = 0; i < v->count; i++)
                put_number(j, v->field, v->numbers[i]);
        json_end(j, ']');
}

/* The name of a number, or null; flags can have names of any length. */
static void put_name(Json *j, const perfd_field *f, uint64_t number) {
        char small[512], *text = small;
        size_t n = perfd_field_render(f, number, small, sizeof(small));

        if (n >= sizeof(small)) {
                text = must_have(malloc(n + 1));
                n = perfd_field_render(f, number, text, n + 1);
        }
        if (n > 0)
                json_put_text(j, (perfd_text){ .bytes = text, .length = n });
        else
                json_put_null(j);
        if (text != small)
                free(text);
}

void value_put_names_json(Json *j, const perfd_value *v) {
        if (v->field->count == 1) {
                put_name(j, v->field, v->numbers[0]);
                return;
        }
        json_begin(j, '[');
        for (size_t i = 0; i < v->count; i++)
                put_name(j, v->field, v->numbers[i]);
        json_end(j, ']');
}

static void put_fields(Json *j, const perfd_item *item) {
        perfd_value v;
        bool names = false;

        JSON_KEY(j, "fields");
        json_begin(j, '{');
        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                json_put_name(j, v.field->name);
                value_put_json(j, &v);
                names = names || v.field->n_values > 0;
        }
        json_end(j, '}');
        if (!names)
                return;
        JSON_KEY(j, "names");
        json_begin(j, '{');
        for (size_t i = 0; perfd_item_get(item, i, &v); i++)
                if (v.field->n_values > 0) {
                        json_put_name(j, v.field->name);
                        value_put_names_json(j, &v);
                }
        json_end(j, '}');
}

static void put_numbers(Output *o, const perfd_value *v) {
        char separator = '[';

        for (size_t i = 0; i < v->count; i++, separator = ',') {
                char *to = output_begin(o, 1 + DECIMAL_ROOM);

                *to = separator;
                output_end(o, decimal_put(to + 1, v->numbers[i]));
        }
        if (v->count == 0)
                output_put_char(o, '[');
        output_put_char(o, ']');
}

/* The same by a plan: a number behind its key in one go. */
static void put_planned(Output *o, const PlannedField *f, const perfd_value *v) {
        char *to = output_begin(o, f->n_key + PLAN_PIECE + 1 + DECIMAL_ROOM);
        Json j = json_of(o);

        to = plan_put(to, f->key, f->n_key);
        if (!f->is_array && (f->kind == PERFD_UNSIGNED || f->kind == PERFD_POINTER))
                output_end(o, decimal_put(to, v->numbers[0]));
        else if (!f->is_array && f->kind == PERFD_SIGNED)
                output_end(o, signed_put(to, (int64_t)v->numbers[0]));
        else {
                output_end(o, to);
                if (f->kind == PERFD_UNSIGNED || f->kind == PERFD_POINTER)
                        put_numbers(o, v);
                else
                        value_put_json(&j, v);
        }
}

static void put_planned_names(Json *j, const ItemPlan *plan, const perfd_item *item) {
        Output *o = j->out;
        perfd_value v;

        if (plan->n_names == 0)
                return;
        JSON_KEY(j, "names");
        output_put_char(o, '{');
        for (size_t i = 0; i < plan->n_names && perfd_item_get(item, plan->names[i].index, &v); i++) {
                const PlannedField *f = &plan->names[i];

                output_end(o, plan_put(output_begin(o, f->n_key + PLAN_PIECE), f->key, f->n_key));
                j->comma = false;
                value_put_names_json(j, &v);
        }
        output_put_char(o, '}');
        j->comma = true;
}

static void put_planned_fields(Json *j, const ItemPlan *plan, const perfd_item *item) {
        Output *o = j->out;
        perfd_value v;
        size_t n = 0;

        JSON_KEY(j, "fields");
        output_put_char(o, '{');
        while (n < plan->n_fields && perfd_item_get(item, plan->fields[n].index, &v))
                put_planned(o, &plan->fields[n++], &v);
        output_put_char(o, '}');
        j->comma = true;
        if (n > 0)
                put_planned_names(j, plan, item);
}

static void put_record(Json *j, const perfd_item *item) {
        JSON_KEY(j, "record");
        json_begin(j, '{');
        record_put_json(j, item);
        json_end(j, '}');
}

/* What is not known is left out. */
static void put_process(Json *j, const perfd_process *p) {
        if (p->executable.length > 0)
                JSON_TEXT(j, "exe", p->executable);
        if (p->has_uid)
                JSON_NUMBER(j, "uid", p->uid);
        if (p->cgroup.length > 0)
                JSON_TEXT(j, "cgroup", p->cgroup);
        if (*p->container)
                JSON_STRING(j, "container", p->container);
        if (*p->runtime)
                JSON_STRING(j, "runtime", p->runtime);
        if (*p->pod_uid)
                JSON_STRING(j, "pod_uid", p->pod_uid);
        if (*p->unit)
                JSON_STRING(j, "unit", p->unit);
}

/* NULL: it has nothing to say. */
static const char *zero_tid_name(perfd_zero_tid zero_tid) {
        static const char *const names[] = {
                [PERFD_ZERO_TID_IDLE] = "idle", [PERFD_ZERO_TID_OUTSIDE] = "outside", [PERFD_ZERO_TID_UNKNOWN] = "unknown",
        };

        return names[zero_tid];
}

static void put_head(Json *j, const perfd_item *item, uint64_t wall) {
        const perfd_event *event = perfd_item_event(item);

        json_begin(j, '{');
        JSON_STRING(j, "kind", record_name(perfd_item_record(item)));
        JSON_NUMBER(j, "time", perfd_item_time(item));
        JSON_NUMBER(j, "wall", wall);
        JSON_KEY(j, "event");
        if (event)
                json_put_string(j, event->name);
        else
                json_put_null(j);
        json_put_name(j, "kernel_event");
        if (event)
                json_put_string(j, event->event);
        else
                json_put_null(j);
        if (perfd_item_cpu(item) == PERFD_CPU_NONE)
                JSON_NULL(j, "cpu");
        else
                JSON_NUMBER(j, "cpu", perfd_item_cpu(item));
        JSON_NUMBER(j, "pid", perfd_item_pid(item));
        JSON_NUMBER(j, "tid", perfd_item_tid(item));
}

static void put_who(Json *j, const perfd_item *item) {
        const perfd_process *process = perfd_item_process(item);

        JSON_TEXT(j, "comm", perfd_item_comm(item));
        if (zero_tid_name(perfd_item_zero_tid(item)))
                JSON_STRING(j, "zero_tid", zero_tid_name(perfd_item_zero_tid(item)));
        if (process)
                put_process(j, process);
}

/* What few items have. */
static void put_rest(Json *j, ItemPlans *plans, const perfd_item *item, bool raw) {
        if (perfd_item_record(item) != PERFD_SAMPLE)
                put_record(j, item);
        if (perfd_item_period(item) > 0)
                JSON_NUMBER(j, "period", perfd_item_period(item));
        if (perfd_item_ip(item) > 0)
                (JSON_KEY(j, "ip"), json_put_hex(j, perfd_item_ip(item)));
        if (perfd_item_address(item) > 0)
                (JSON_KEY(j, "address"), json_put_hex(j, perfd_item_address(item)));
        if (raw && perfd_item_record(item) == PERFD_SAMPLE)
                (JSON_KEY(j, "raw"), json_put_hex_bytes(j, perfd_item_raw(item)));
        frames_put_json(j, plans, item);
        parts_put_json(j, item);
}

static void put_plain(Json *j, ItemPlans *plans, const ItemPlan *plan, const perfd_item *item, uint64_t wall, const perfd_plain_sample *s) {
        Output *o = j->out;
        const perfd_process *process = perfd_item_process(item);
        char *to = plain_json_put_head(o, plans, plan, s, wall);

        j->comma = true;
        if (process) {
                output_end(o, to);
                put_process(j, process);
                to = output_begin(o, plan->room);
        }
        to = plain_json_put_fields(o, plan, to, item, s);
        if (plan->n_names > 0) {
                output_end(o, to);
                put_planned_names(j, plan, item);
                to = output_begin(o, plan->room);
        }
        output_end(o, plain_json_put_rest(plans, plan, to, s));
        if (!s->has_callchain)
                return;
        frames_put_json(j, plans, item);
        output_end(o, plain_json_put_end(output_begin(o, plan->room), s));
}

void item_print_json(Output *o, ItemPlans *plans, const perfd_item *item, uint64_t wall, bool raw) {
        Json j = json_of(o);
        const perfd_event *event = perfd_item_event(item);
        const ItemPlan *plan = plans && event ? item_plans_find(plans, event) : NULL;
        perfd_plain_sample plain;

        if (plan && !raw && perfd_item_plain(item, &plain)) {
                put_plain(&j, plans, plan, item, wall, &plain);
                return;
        }
        put_head(&j, item, wall);
        put_who(&j, item);
        if (plan)
                put_planned_fields(&j, plan, item);
        else
                put_fields(&j, item);
        if (raw || perfd_item_has_more(item))
                put_rest(&j, plans, item, raw);
        output_put(o, "}\n", 2);
}

void gap_print_json(Output *o, const perfd_gap *gap) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "gap");
        JSON_STRING(&j, "reason", gap->reason);
        if (gap_is_of_packets(gap)) {
                JSON_NULL(&j, "items");
                JSON_NULL(&j, "from");
                JSON_NULL(&j, "to");
        } else {
                JSON_NUMBER(&j, "items", gap->items);
                JSON_NUMBER(&j, "from", gap->from);
                JSON_NUMBER(&j, "to", gap->to);
        }
        JSON_NUMBER(&j, "first_sequence", gap->first_sequence);
        JSON_NUMBER(&j, "last_sequence", gap->last_sequence);
        json_put_name(&j, "events");
        json_begin(&j, '[');
        for (size_t i = 0; i < gap->n_events; i++) {
                json_begin(&j, '{');
                JSON_NUMBER(&j, "id", gap->events[i].id);
                JSON_STRING(&j, "event", gap->events[i].name);
                JSON_NUMBER(&j, "items", gap->events[i].items);
                json_end(&j, '}');
        }
        json_end(&j, ']');
        json_end(&j, '}');
        json_end_line(&j);
}
