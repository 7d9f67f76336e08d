/*
 * Descriptors end with their events, and are replaced when an event changes, but what was counted stays: a shape has copies of all
 * that is needed to show a key. A key has no names of values: 8 bytes are compared, whatever they are called.
 */
#include "client/perfctl/count/key.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/field-copy.h"
#include "client/perfctl/base/perfctl.h"

#define ABSENT UINT64_MAX
#define FAULT (UINT64_MAX - 1) /* a text that its probe could not read, which is not "" */
#define NO_FIELD SIZE_MAX

/* Of one column: a field, a part, or neither. */
typedef struct KeySource {
        perfd_field *field; /* a copy, and of an array whose element is asked for like one of that alone */
        KeyPart part;
} KeySource;

struct KeyShape {
        KeySource *columns;
};

struct KeyEvent {
        uint32_t id;
        size_t shape, name;
        size_t *fields; /* by column: the place in its descriptor */
        size_t numbers[KEY_NUMBERS_MAX]; /* of each number the same */
        bool are_signed[KEY_NUMBERS_MAX];
};

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* The place of what is meant among the event's fields. */
static size_t field_find(const perfd_event *event, const KeyName *name) {
        for (size_t i = 0; name->field && i < event->n_fields; i++)
                if (strcmp(event->fields[i].name, name->field) == 0)
                        return name->element < 0 || (field_is_number(&event->fields[i]) && event->fields[i].count != 1)
                                       ? i
                                       : NO_FIELD;
        return NO_FIELD;
}

static perfd_field *copy_for(const perfd_field *f, const KeyName *name) {
        perfd_field *copy = field_copy(f, name->text);

        if (f->kind == PERFD_SIGNED) /* as its sums and extremes are shown */
                copy->hex = false;
        if (name->element >= 0)
                copy->count = 1;
        return copy;
}

static bool shape_is_like(const Keys *k, const KeyShape *a, const KeyShape *b) {
        for (size_t i = 0; i < k->n_columns; i++) {
                const KeySource *x = &a->columns[i], *y = &b->columns[i];

                if (x->part != y->part || !x->field != !y->field || (x->field && !field_is_like(x->field, y->field)))
                        return false;
        }
        return true;
}

static void shape_deinit(const Keys *k, KeyShape *shape) {
        for (size_t i = 0; i < k->n_columns; i++)
                field_free(shape->columns[i].field);
        free(shape->columns);
}

/* The one there is, or this one, which is taken. */
static size_t shape_add(Keys *k, KeyShape shape) {
        for (size_t i = 0; i < k->n_shapes; i++)
                if (shape_is_like(k, &k->shapes[i], &shape)) {
                        shape_deinit(k, &shape);
                        return i;
                }
        k->shapes = must_have(reallocarray(k->shapes, k->n_shapes + 1, sizeof(*k->shapes)));
        k->shapes[k->n_shapes] = shape;
        return k->n_shapes++;
}

static size_t name_add(Keys *k, const char *name) {
        for (size_t i = 0; i < k->n_names; i++)
                if (strcmp(k->names[i], name) == 0)
                        return i;
        k->names = must_have(reallocarray(k->names, k->n_names + 1, sizeof(*k->names)));
        k->names[k->n_names] = must_have(strdup(name));
        return k->n_names++;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* The first with this id or a greater one. */
static size_t event_place(const Keys *k, uint32_t id) {
        size_t low = 0, high = k->n_events;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (k->events[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static KeyEvent *event_reserve(Keys *k, uint32_t id) {
        size_t i = event_place(k, id);

        k->last = NULL;
        if (i < k->n_events && k->events[i].id == id) {
                free(k->events[i].fields);
                return &k->events[i];
        }
        k->events = must_have(reallocarray(k->events, k->n_events + 1, sizeof(*k->events)));
        memmove(&k->events[i + 1], &k->events[i], (k->n_events - i) * sizeof(*k->events));
        k->n_events++;
        return &k->events[i];
}

/* The place of a field that is a number, or NO_FIELD. */
static size_t number_find(const perfd_event *event, const KeyName *name, bool *ret_is_signed) {
        size_t place = field_find(event, name);
        const perfd_field *f = place != NO_FIELD ? &event->fields[place] : NULL;

        if (!f || !field_is_number(f) || (f->count != 1 && name->element < 0))
                return NO_FIELD;
        *ret_is_signed = f->kind == PERFD_SIGNED;
        return place;
}

void keys_add_event(Keys *k, const perfd_event *event, const char *name) {
        KeyShape shape = { .columns = must_have(calloc(k->n_columns + 1, sizeof(*shape.columns))) };
        KeyEvent *e = event_reserve(k, event->id);

        *e = (KeyEvent){ .id = event->id, .name = name_add(k, name),
                         .fields = must_have(calloc(k->n_columns + 1, sizeof(*e->fields))) };
        for (size_t i = 0; i < k->n_columns; i++) {
                size_t place = field_find(event, &k->columns[i]);

                e->fields[i] = place;
                if (place == NO_FIELD)
                        shape.columns[i] = (KeySource){ .part = k->columns[i].part };
                else
                        shape.columns[i] = (KeySource){ .field = copy_for(&event->fields[place], &k->columns[i]),
                                                        .part = KEY_NONE };
        }
        e->shape = shape_add(k, shape);
        for (size_t i = 0; i < k->n_numbers; i++)
                e->numbers[i] = number_find(event, k->numbers[i], &e->are_signed[i]);
}

static const KeyEvent *event_find(Keys *k, const perfd_item *item) {
        uint32_t id = perfd_item_event(item)->id;

        if (!k->last || k->last->id != id)
                k->last = &k->events[event_place(k, id)]; /* each has come */
        return k->last;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static uint8_t *reserve(Keys *k, size_t n) {
        uint8_t *at;

        if (k->room - k->n_bytes < n) {
                k->room = 2 * k->room + n;
                k->bytes = must_have(realloc(k->bytes, k->room));
        }
        at = k->bytes + k->n_bytes;
        k->n_bytes += n;
        return at;
}

static void put_word(Keys *k, uint64_t word) {
        memcpy(reserve(k, sizeof(word)), &word, sizeof(word));
}

static void put_number(Keys *k, uint64_t number) {
        uint64_t words[] = { sizeof(number), number };

        memcpy(reserve(k, sizeof(words)), words, sizeof(words));
}

static void put_text(Keys *k, const char *bytes, size_t n) {
        size_t padded = (n + 7) / 8 * 8;
        uint8_t *at;

        put_word(k, n);
        if (n == 0)
                return;
        at = reserve(k, padded);
        memset(at + padded - 8, 0, 8);
        memcpy(at, bytes, n);
}

/* What is empty is not known. */
static void put_known_text(Keys *k, const char *bytes, size_t n) {
        if (n > 0)
                put_text(k, bytes, n);
        else
                put_word(k, ABSENT);
}

static void put_process_part(Keys *k, KeyPart part, const perfd_process *p) {
        if (!p || (part == KEY_UID && !p->has_uid))
                put_word(k, ABSENT);
        else if (part == KEY_UID)
                put_number(k, p->uid);
        else if (part == KEY_EXE)
                put_known_text(k, p->executable.bytes, p->executable.length);
        else if (part == KEY_CGROUP)
                put_known_text(k, p->cgroup.bytes, p->cgroup.length);
        else if (part == KEY_CONTAINER)
                put_known_text(k, p->container, strlen(p->container));
        else
                put_known_text(k, p->unit, strlen(p->unit));
}

/* As in a line of `watch`: a tid of 0 is that of the idle thread, which has a name, or of nobody. */
static void put_task_id(Keys *k, const perfd_item *item, uint32_t id) {
        if (id > 0 || perfd_item_tid(item) > 0 || perfd_item_comm(item).length > 0)
                put_number(k, id);
        else
                put_word(k, ABSENT);
}

/* 0: the sample has none. */
static void put_if_any(Keys *k, uint64_t number) {
        if (number > 0)
                put_number(k, number);
        else
                put_word(k, ABSENT);
}

static uint64_t period_of(const perfd_item *item) {
        uint64_t period = perfd_item_period(item);

        return period > 0 ? period : 1;
}

static void put_part(Keys *k, KeyPart part, const KeyEvent *event, const perfd_item *item) {
        perfd_text comm;

        switch (part) {
        case KEY_COMM:
                comm = perfd_item_comm(item);
                put_known_text(k, comm.bytes, comm.length);
                return;
        case KEY_PID:
                put_task_id(k, item, perfd_item_pid(item));
                return;
        case KEY_TID:
                put_task_id(k, item, perfd_item_tid(item));
                return;
        case KEY_CPU:
                put_number(k, perfd_item_cpu(item));
                return;
        case KEY_EVENT:
                put_number(k, event->name);
                return;
        case KEY_IP:
                put_if_any(k, perfd_item_ip(item));
                return;
        case KEY_ADDR:
                put_if_any(k, perfd_item_address(item));
                return;
        case KEY_PERIOD:
                put_number(k, period_of(item));
                return;
        case KEY_NONE:
                put_word(k, ABSENT);
                return;
        default:
                put_process_part(k, part, perfd_item_process(item));
        }
}

static void put_field(Keys *k, const KeyName *name, const perfd_value *v) {
        if (v->fault)
                put_word(k, FAULT);
        else if (!field_is_number(v->field))
                put_text(k, v->text.bytes, v->text.length);
        else if (name->element < 0)
                put_text(k, (const char *)v->numbers, v->count * sizeof(*v->numbers));
        else if ((uint64_t)name->element < v->count)
                put_number(k, v->numbers[name->element]);
        else
                put_word(k, ABSENT);
}

void keys_encode(Keys *k, const perfd_item *item) {
        const KeyEvent *event = event_find(k, item);
        const KeyShape *shape = &k->shapes[event->shape];
        perfd_value v;

        k->n_bytes = 0;
        put_word(k, event->shape);
        for (size_t i = 0; i < k->n_columns; i++)
                if (shape->columns[i].field && perfd_item_get(item, event->fields[i], &v))
                        put_field(k, &k->columns[i], &v);
                else
                        put_part(k, shape->columns[i].part, event, item);
}

bool keys_number(Keys *k, const perfd_item *item, size_t i, uint64_t *ret_number, bool *ret_is_signed) {
        const KeyEvent *event = event_find(k, item);
        const KeyName *name = k->numbers[i];
        uint64_t element = name->element < 0 ? 0 : (uint64_t)name->element;
        perfd_value v;

        if (event->numbers[i] == NO_FIELD && name->part == KEY_PERIOD) {
                *ret_number = period_of(item);
                *ret_is_signed = false;
                return true;
        }
        if (event->numbers[i] == NO_FIELD || !perfd_item_get(item, event->numbers[i], &v) || element >= v.count)
                return false;
        *ret_number = v.numbers[element];
        *ret_is_signed = event->are_signed[i];
        return true;
}

static const perfd_field *part_field(KeyPart part) {
        static const perfd_field text = { .name = "", .type = "", .kind = PERFD_TEXT, .size = 1, .count = 1, .delimiter = "" };
        static const perfd_field number = {
                .name = "", .type = "", .kind = PERFD_UNSIGNED, .size = 8, .count = 1, .delimiter = ""
        };

        switch (part) {
        case KEY_PID:
        case KEY_TID:
        case KEY_CPU:
        case KEY_UID:
        case KEY_IP:
        case KEY_ADDR:
        case KEY_PERIOD:
                return &number;
        default:
                return &text;
        }
}

static uint64_t get_word(const uint8_t **at) {
        uint64_t word;

        memcpy(&word, *at, sizeof(word));
        *at += sizeof(word);
        return word;
}

void keys_decode(const Keys *k, const uint8_t *key, KeyCell *cells) {
        const KeyShape *shape = &k->shapes[get_word(&key)];

        for (size_t i = 0; i < k->n_columns; i++) {
                const KeySource *source = &shape->columns[i];
                uint64_t length = get_word(&key);
                perfd_value *v = &cells[i].value;

                cells[i] = (KeyCell){ .part = source->field ? KEY_NONE : source->part, .is_absent = length == ABSENT };
                if (length == ABSENT)
                        continue;
                v->field = source->field ? source->field : part_field(source->part);
                v->fault = length == FAULT;
                if (v->fault)
                        continue;
                if (source->part == KEY_EVENT) {
                        const char *name = k->names[*(const uint64_t *)(const void *)key];

                        v->text = (perfd_text){ .bytes = name, .length = strlen(name) };
                } else if (field_is_number(v->field)) {
                        v->numbers = (const uint64_t *)(const void *)key; /* keys begin at multiples of 8 */
                        v->count = length / sizeof(uint64_t);
                } else
                        v->text = (perfd_text){ .bytes = (const char *)key, .length = length };
                key += (length + 7) / 8 * 8;
        }
}

void keys_init(Keys *k, const KeyName *columns, size_t n_columns, const KeyName *const *numbers, size_t n_numbers) {
        *k = (Keys){ .columns = columns, .n_columns = n_columns, .numbers = numbers, .n_numbers = n_numbers };
}

void keys_deinit(Keys *k) {
        for (size_t i = 0; i < k->n_shapes; i++)
                shape_deinit(k, &k->shapes[i]);
        for (size_t i = 0; i < k->n_events; i++)
                free(k->events[i].fields);
        for (size_t i = 0; i < k->n_names; i++)
                free(k->names[i]);
        free(k->shapes);
        free(k->events);
        free(k->names);
        free(k->bytes);
        *k = (Keys){ .columns = NULL };
}
