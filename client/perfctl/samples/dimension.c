/*
 * `comm` is the thread's name, also of events that have a field of this name, as perf-report(1) has it; where --where and --by mean the
 * field, it is "field.comm" here.
 */
#include "client/perfctl/samples/dimension.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/field-copy.h"
#include "client/perfctl/base/memory.h"

#define FIELD "field."
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-[]"
#define NSEC_PER_SEC UINT64_C(1000000000)
#define TEXT_FIRST 128 /* bytes: most values are shorter */

static const struct {
        const char *name;
        DimensionKind kind;
} names[] = {
        { "comm", DIMENSION_COMM },     { "pid", DIMENSION_PID },           { "tid", DIMENSION_TID },   { "cpu", DIMENSION_CPU },
        { "dso", DIMENSION_DSO },       { "symbol", DIMENSION_SYMBOL },     { "sym", DIMENSION_SYMBOL }, { "line", DIMENSION_LINE },
        { "srcline", DIMENSION_LINE },  { "srcfile", DIMENSION_FILE },      { "time", DIMENSION_TIME },
         { "event", DIMENSION_EVENT },       { "container", DIMENSION_CONTAINER },
        { "unit", DIMENSION_UNIT },     { "cgroup", DIMENSION_CGROUP },     { "exe", DIMENSION_EXE },   { "uid", DIMENSION_UID },
};

bool dimension_init(Dimension *d, const char *text) {
        const bool is_field = strncmp(text, FIELD, strlen(FIELD)) == 0;

        *d = (Dimension){ .kind = DIMENSION_FIELD, .text = text, .quantum = DIMENSION_QUANTUM };
        for (size_t i = 0; !is_field && i < sizeof(names) / sizeof(*names); i++)
                if (strcmp(names[i].name, text) == 0) {
                        d->kind = names[i].kind;
                        return true;
                }
        text += is_field ? strlen(FIELD) : 0;
        return *text && text[strspn(text, NAME_CHARACTERS)] == '\0' && key_name_init(&d->name, text) && d->name.field;
}

void dimension_deinit(Dimension *d) {
        key_name_deinit(&d->name);
}

static uint64_t text_value(TextIds *texts, perfd_text text) {
        return text.length > 0 ? text_ids_add(texts, text, false) : DIMENSION_ABSENT;
}

static uint64_t string_value(TextIds *texts, const char *text) {
        return text_value(texts, (perfd_text){ .bytes = text, .length = strlen(text) });
}

/* As people read it. What is a number and nothing else is one in JSON, too. */
static uint64_t value_of(TextIds *texts, const perfd_value *v) {
        const bool is_number = field_is_number(v->field) && v->count == 1 && !v->field->hex && v->field->kind != PERFD_POINTER &&
                               perfd_field_render(v->field, v->numbers[0], NULL, 0) == 0;
        char first[TEXT_FIRST], *larger = NULL;
        size_t n = perfd_value_render(v, first, sizeof(first));
        uint64_t value;

        if (n >= sizeof(first)) {
                larger = must_have(malloc(n + 1));
                n = perfd_value_render(v, larger, n + 1);
        }
        value = text_ids_add(texts, (perfd_text){ .bytes = larger ? larger : first, .length = n }, is_number);
        free(larger);
        return value;
}

static uint64_t field_value(Dimension *d, TextIds *texts, const perfd_item *item) {
        const KeyName *name = &d->name;
        perfd_field element;
        perfd_value v;

        if (!perfd_item_find(item, name->field, &v))
                return DIMENSION_ABSENT;
        d->was_found = true;
        if (name->element < 0)
                return value_of(texts, &v);
        if (!field_is_number(v.field) || (uint64_t)name->element >= v.count)
                return DIMENSION_ABSENT;
        element = *v.field;
        element.count = 1;
        return value_of(texts, &(perfd_value){ .field = &element, .numbers = v.numbers + name->element, .count = 1 });
}

/* Seconds, as `script` prints them, with as many digits as the quantum has. */
static uint64_t time_value(const Dimension *d, TextIds *texts, uint64_t time) {
        const uint64_t begin = time - time % d->quantum;
        char text[48];
        size_t n = (size_t)snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, begin / NSEC_PER_SEC, begin % NSEC_PER_SEC);

        for (uint64_t ns = d->quantum; ns % 10 == 0 && text[n - 1] != '.'; ns /= 10)
                n--;
        return text_ids_add(texts, (perfd_text){ .bytes = text, .length = n - (text[n - 1] == '.') }, true);
}

static uint64_t process_value(const Dimension *d, TextIds *texts, const perfd_process *process) {
        if (!process)
                return DIMENSION_ABSENT;
        switch (d->kind) {
        case DIMENSION_CONTAINER:
                return string_value(texts, process->container);
        case DIMENSION_UNIT:
                return string_value(texts, process->unit);
        case DIMENSION_CGROUP:
                return text_value(texts, process->cgroup);
        case DIMENSION_EXE:
                return text_value(texts, process->executable);
        default:
                return process->has_uid ? process->uid : DIMENSION_ABSENT;
        }
}

uint64_t dimension_of_sample(Dimension *d, TextIds *texts, const perfd_item *item, const char *event) {
        switch (d->kind) {
        case DIMENSION_COMM:
                return text_value(texts, perfd_item_comm(item));
        case DIMENSION_PID:
                return perfd_item_pid(item);
        case DIMENSION_TID:
                return perfd_item_tid(item);
        case DIMENSION_CPU:
                return perfd_item_cpu(item) != PERFD_CPU_NONE ? perfd_item_cpu(item) : DIMENSION_ABSENT;
        case DIMENSION_EVENT:
                return string_value(texts, event);
        case DIMENSION_TIME:
                return time_value(d, texts, perfd_item_time(item));
        case DIMENSION_FIELD:
                return field_value(d, texts, item);
        default:
                return process_value(d, texts, perfd_item_process(item));
        }
}

uint64_t dimension_of_frame(const Dimension *d, const FrameId *frame) {
        const uint32_t id = !frame ? ID_NONE : d->kind == DIMENSION_DSO ? frame->dso : d->kind == DIMENSION_LINE ? frame->line :
                            d->kind == DIMENSION_FILE ? frame->file : frame->symbol;

        if (id == ID_NONE)
                return DIMENSION_ABSENT;
        return id | (d->kind == DIMENSION_SYMBOL && frame->is_kernel ? DIMENSION_OF_KERNEL : 0);
}
