/*
 * A sample of an external event. The fields' types come from the event itself, so that a value is checked before it is
 * sent, and a text may look like a number.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/near.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/events/refs.h"

static const char external[] = "external:";

/* Now, of the clock that the streams have. */
static int find_now(Perfctl *p, uint64_t *ret) {
        DaemonClock clock;
        int r = daemon_clock_find(p, &clock);

        if (r == 0)
                *ret = daemon_clock_now(&clock);
        return r;
}

/* Of "u32" or "s8": the least and the most of what it can be. A type of a later perfd's is as wide as the wire. */
typedef struct Range {
        uint64_t below, most; /* how far below 0, and the largest */
} Range;

static Range range_of(const char *type) {
        unsigned long bits = strtoul(type + 1, NULL, 10);
        uint64_t all = bits > 0 && bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;

        return *type == 'u' ? (Range){ .below = 0, .most = all } : (Range){ .below = all / 2 + 1, .most = all / 2 };
}

static bool parse_whole(const char *text, Range range, uint64_t *ret) {
        bool negative = *text == '-';
        uint64_t number;

        if (!quantity_parse_number(text + negative, &number) || number > (negative ? range.below : range.most))
                return false;
        *ret = negative ? -number : number;
        return true;
}

/* "u32", "s8", "bool", "text", "bytes". */
static bool parse_value(const char *type, const char *text, perfd_external_value *ret) {
        switch (*type) {
        case 'u':
                ret->kind = PERFD_UNSIGNED;
                return parse_whole(text, range_of(type), &ret->number);
        case 's':
                ret->kind = PERFD_SIGNED;
                return parse_whole(text, range_of(type), &ret->number);
        case 'b':
                if (strcmp(type, "bool") == 0) {
                        ret->kind = PERFD_BOOL;
                        ret->number = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
                        return ret->number || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
                }
                ret->kind = PERFD_BYTES;
                break;
        default:
                ret->kind = PERFD_TEXT;
        }
        ret->text = (perfd_text){ .bytes = text, .length = strlen(text) };
        return true;
}

static int fail_value(const Perfctl *p, const char *argument, const char *type) {
        Range range = range_of(type);

        if (*type == 'b')
                return perfctl_fail(p, PERFCTL_USAGE, "'%s' is not a value of type %s: expected true, false, 1 or 0", argument,
                                    type);
        return perfctl_fail(p, PERFCTL_USAGE,
                            "'%s' is not a value of type %s: expected a whole number such as 31 or 0x1f, from %s%" PRIu64
                            " to %" PRIu64,
                            argument, type, range.below ? "-" : "", range.below, range.most);
}

/* Of "NAME:TYPE" the name's length. */
static size_t name_length(const char *field) {
        return strcspn(field, ":");
}

static int fail_unknown_field(const Perfctl *p, const perfd_event_spec *spec, const char *argument) {
        char *name = must_have(strndup(argument, strcspn(argument, "=")));
        char **names = must_have(calloc(spec->n_fields + 1, sizeof(*names)));
        Near near = near_of(name);
        int r;

        for (size_t i = 0; i < spec->n_fields; i++) {
                names[i] = must_have(strndup(spec->fields[i], name_length(spec->fields[i])));
                near_add(&near, names[i]);
        }
        r = perfctl_fail(p, PERFCTL_USAGE, "%s has no field '%s'%s%s%s", spec->name, name,
                         near.best ? ", did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "");
        for (size_t i = 0; i < spec->n_fields; i++)
                free(names[i]);
        free(names);
        free(name);
        return r;
}

static int set_value(const Perfctl *p, const perfd_event_spec *spec, const char *argument, perfd_external_value *values,
                     bool *given) {
        size_t length = strcspn(argument, "=");

        for (size_t i = 0; i < spec->n_fields; i++) {
                const char *field = spec->fields[i];

                if (name_length(field) != length || memcmp(field, argument, length) != 0)
                        continue;
                if (!argument[length])
                        return perfctl_fail(p, PERFCTL_USAGE, "'%s' has no value: write %s=VALUE", argument, argument);
                if (given[i])
                        return perfctl_fail(p, PERFCTL_USAGE, "'%.*s' was already given", (int)length, argument);
                given[i] = true;
                if (parse_value(field + length + 1, argument + length + 1, &values[i]))
                        return 0;
                return fail_value(p, argument, field + length + 1);
        }
        return fail_unknown_field(p, spec, argument);
}

static int parse_values(const Perfctl *p, const perfd_event_spec *spec, perfd_external_value *values) {
        bool *given = must_have(calloc(spec->n_fields + 1, sizeof(*given)));
        int r = 0;

        for (size_t i = 1; i < p->n_arguments && r == 0; i++)
                r = set_value(p, spec, p->arguments[i], values, given);
        for (size_t i = 0; i < spec->n_fields && r == 0; i++)
                if (!given[i])
                        r = perfctl_fail(
                                p, PERFCTL_USAGE, "the field %.*s has no value: a sample has all of %s's %zu fields",
                                (int)name_length(spec->fields[i]), spec->fields[i], spec->name, spec->n_fields);
        free(given);
        return r;
}

static int parse_number(const Perfctl *p, const char *option, uint64_t most, uint64_t *ret) {
        const char *text = perfctl_get(p, option);

        if (!text || (quantity_parse_number(text, ret) && *ret <= most))
                return 0;
        return perfctl_fail(p, PERFCTL_USAGE, "--%s: '%s' is not a number from 0 to %llu", option, text,
                            (unsigned long long)most);
}

static int parse_sample(Perfctl *p, perfd_external_sample *s) {
        uint64_t pid = 0, tid = 0, cpu = 0;
        int r;

        r = parse_number(p, "pid", INT32_MAX, &pid);
        if (r == 0)
                r = parse_number(p, "tid", INT32_MAX, &tid);
        if (r == 0)
                r = parse_number(p, "cpu", UINT32_MAX, &cpu);
        if (r == 0)
                r = parse_number(p, "time", UINT64_MAX, &s->time);
        if (r == 0 && !perfctl_get(p, "time"))
                r = find_now(p, &s->time);
        s->pid = (uint32_t)pid;
        s->tid = perfctl_get(p, "tid") ? (uint32_t)tid : (uint32_t)pid; /* the first thread has the process's number */
        s->cpu = (uint32_t)cpu;
        return r;
}

/* What samples can be emitted of, and may have been meant; NULL. */
static const char *find_near(const char *name, const perfd_result *list) {
        const perfd_event_row *row;
        const char *best = NULL;
        Near near = near_of(name);

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++) {
                const char *before = near.best;

                if (strncmp(row->spec->event, external, strlen(external)) != 0)
                        continue;
                near_add(&near, row->spec->name);
                if (strncmp(row->spec->name, external, strlen(external)) == 0)
                        near_add(&near, row->spec->name + strlen(external));
                if (near.best != before)
                        best = row->spec->name;
        }
        return best;
}

/* One that may not be emitted by who asks is not listed to him either: perfd says which rule decides, whether it is there or not. */
static int fail_unknown(Perfctl *p, const char *name, const perfd_result *list) {
        const char *near = find_near(name, list);
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        perfd_external_sample sample = PERFD_EXTERNAL_SAMPLE_INIT;

        sample.event = name;
        if (perfd_emit(p->client, &sample, 1, &result) == PERFD_E_REFUSED &&
            strcmp(perfd_client_error(p->client)->reason, "not-granted") == 0)
                return perfctl_fail_client(p, NULL);
        if (near)
                return perfctl_fail(p, PERFCTL_FAILED, "no event is called '%s': did you mean '%s'?", name, near);
        return perfctl_fail(p, PERFCTL_FAILED,
                            "no event is called '%s': `perfctl add external:NAME --field ...` adds one", name);
}

/* The running event of this very name. */
static int find_event(Perfctl *p, const char *name, const perfd_result *list, const perfd_event_row **ret) {
        const perfd_event_row *row;

        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strcmp(row->spec->name, name) == 0) {
                        *ret = row;
                        if (strncmp(row->spec->event, external, strlen(external)) == 0)
                                return 0;
                        return perfctl_fail(p, PERFCTL_FAILED, "%s is not an external event: its samples come from the kernel", name);
                }
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (strncmp(row->spec->name, external, strlen(external)) == 0 && strcmp(row->spec->name + strlen(external), name) == 0)
                        return perfctl_fail(p, PERFCTL_FAILED, "no event is called '%s': did you mean '%s'?", name, row->spec->name);
        return fail_unknown(p, name, list);
}

static int print_emitted(Perfctl *p, const perfd_event_row *event, const perfd_emitted_row *row) {
        const char *name = event->spec->name;
        Json j = json_of(&p->out);

        if (p->json) {
                json_begin(&j, '{');
                JSON_NUMBER(&j, "taken", row->taken);
                JSON_NUMBER(&j, "late", row->late);
                JSON_NUMBER(&j, "lost", row->lost);
                json_end(&j, '}');
                json_end_line(&j);
        } else if (row->late > 0)
                output_print(&p->out, "late: a stream had delivered newer samples already\n");
        else if (row->taken > 0 && row->lost == 0)
                ref_print(p, name, event->id);
        if (row->lost > 0)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "the sample is lost: perfd has more samples to deliver than it has room for; it is in "
                                    "the ledger as batch_pool");
        if (row->taken == 0)
                return perfctl_fail(p, PERFCTL_FAILED, "not accepted: %s is disabled, `perfctl enable %s` enables it", name, name);
        return PERFCTL_OK;
}

/* A value that its field cannot have is the command line's error, whoever finds it: a text may be too long. */
static int fail_emit(const Perfctl *p) {
        int r = perfctl_fail_client(p, NULL);

        return strcmp(perfd_client_error(p->client)->reason, "bad-value") == 0 ? PERFCTL_USAGE : r;
}

static int emit_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL, *result = NULL;
        perfd_external_sample sample = PERFD_EXTERNAL_SAMPLE_INIT;
        const perfd_event_row *event = NULL;
        const perfd_event_spec *spec;
        perfd_external_value *values;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_list(p->client, NULL, &list) != 0)
                return perfctl_fail_client(p, NULL);
        r = find_event(p, p->arguments[0], list, &event);
        if (r != 0)
                return r;
        spec = event->spec;
        values = must_have(calloc(spec->n_fields + 1, sizeof(*values)));
        r = parse_values(p, spec, values);
        if (r == 0)
                r = parse_sample(p, &sample);
        sample.event = spec->name;
        sample.values = values;
        sample.n_values = spec->n_fields;
        if (r == 0 && perfd_emit(p->client, &sample, 1, &result) != 0)
                r = fail_emit(p);
        if (r == 0)
                r = print_emitted(p, event, perfd_result_emitted(result));
        free(values);
        return r;
}

const Verb verb_emit = {
        .name = "emit",
        .arguments = "EVENT [FIELD=VALUE...]",
        .help = "emit a sample of an external event",
        .options = {
                { .name = "time", .argument = "NS", .help = "timestamp in the clock of the streams; default: now" },
                { .name = "pid", .argument = "P", .help = "the process of the sample", .words = WORDS_PROCESSES },
                { .name = "tid", .argument = "T", .help = "the thread of the sample", .words = WORDS_THREADS },
                { .name = "cpu", .argument = "N", .help = "the CPU of the sample" },
        },
        .min_arguments = 1,
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_EXTERNAL,
        .words_behind = WORDS_FIELDS_ALONE,
        .run = emit_run,
};
