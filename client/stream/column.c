/*
 * Columns: the numbers of one field, gathered from the places that the batch has seen. What is gathered once is kept until the next
 * batch, and its memory is used again for that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/item/list.h"
#include "client/stream/batch.h"
#include "client/stream/part.h"

#define NAMES_MAX 400 /* bytes of them in a message */

/* Where the samples of an event are. */
typedef struct BatchRows {
        struct BatchRows *next; /* in its bucket */
        uint64_t number;        /* of the batch that they are of */
        uint32_t event;
        size_t n;
        uint32_t *list;
        size_t room;
} BatchRows;

typedef struct BatchColumn {
        struct BatchColumn *next; /* in its bucket */
        uint64_t number;
        uint32_t event;
        size_t index; /* of the field */
        perfd_column shown;
        uint64_t *values;
        size_t room;
} BatchColumn;

void batch_free(Batch *b) {
        for (size_t i = 0; b && i < BATCH_BUCKETS; i++) {
                for (BatchRows *rows = b->rows[i], *next; rows; rows = next) {
                        next = rows->next;
                        free(rows->list);
                        free(rows);
                }
                for (BatchColumn *column = b->columns[i], *next; column; column = next) {
                        next = column->next;
                        free(column->values);
                        free(column);
                }
        }
        free(b);
}

/* ---- what cannot be ---------------------------------------------------------------------------------------------- */

static bool has_column(const perfd_field *f) {
        return !field_is_text(f) && f->count > 0;
}

/* Names with commas between them, as far as there is room. */
static void names_add(char names[static NAMES_MAX], const char *name) {
        size_t n = strlen(names);

        if (n + strlen(name) + sizeof(", , ...") > NAMES_MAX)
                name = "..."; /* for which there is room */
        if (n < 3 || strcmp(names + n - 3, "...") != 0)
                (void)snprintf(names + n, NAMES_MAX - n, "%s%s", n > 0 ? ", " : "", name);
}

static int fail_event(Batch *b, uint32_t event) {
        const Descriptors *d = &b->client->stream->descriptors;
        char names[NAMES_MAX] = "", name[NAMES_MAX];

        for (size_t i = 0; i < d->n; i++) {
                (void)snprintf(name, sizeof(name), "%u (%s)", d->list[i]->event.id, d->list[i]->event.name);
                names_add(names, name);
        }
        return client_fail(b->client, PERFD_E_INVALID, "unknown-event", "the stream has no event %u: columns are of %s", event,
                           *names ? names : "none yet");
}

/* why: behind the name of the field. */
static int fail_field(Batch *b, const perfd_event *event, const char *reason, const char *field, const char *why) {
        char names[NAMES_MAX] = "";

        for (size_t i = 0; i < event->n_fields; i++)
                if (has_column(&event->fields[i]))
                        names_add(names, event->fields[i].name);
        return client_fail(b->client, PERFD_E_INVALID, reason, "%s: %s %s: it has columns of %s", event->name, field, why,
                           *names ? names : "none of its fields");
}

/* What is a sample's own has no column: where it is. */
static const char *place_of(const char *name) {
        static const struct {
                const char *name, *why;
        } places[] = { { "time", "is what batch->times has" },
                       { "pid", "is what batch->pids has" },
                       { "tid", "is what batch->tids has" },
                       { "cpu", "is what batch->cpus has" },
                       { "comm", "is what perfd_batch_item() has" },
                       { "exe", "is what perfd_batch_item() has" },
                       { "period", "is what perfd_batch_item() has" } };

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                if (strcmp(places[i].name, name) == 0)
                        return places[i].why;
        return "is none of its fields";
}

static int fail_unknown_field(Batch *b, const perfd_event *event, const char *name) {
        const size_t n = strcspn(name, "[");
        char why[NAMES_MAX];

        if (!*name)
                return fail_field(b, event, "unknown-field", "''", "is no name of a field");
        for (size_t i = 0; name[n] && i < event->n_fields; i++)
                if (strlen(event->fields[i].name) == n && strncmp(event->fields[i].name, name, n) == 0) {
                        (void)snprintf(why, sizeof(why), "is in the column of %s", event->fields[i].name);
                        return fail_field(b, event, "unknown-field", name, why);
                }
        return fail_field(b, event, "unknown-field", name, place_of(name));
}

static int find_field(Batch *b, const perfd_event *event, const char *name, const perfd_field **ret_field) {
        for (size_t i = 0; i < event->n_fields; i++) {
                const perfd_field *f = &event->fields[i];

                if (strcmp(f->name, name) != 0)
                        continue;
                if (field_is_text(f))
                        return fail_field(b, event, "no-number", name, "is a text, and no number");
                if (f->count == 0)
                        return fail_field(b, event, "no-number", name, "is an array that has another length in each sample");
                *ret_field = f;
                return 0;
        }
        return fail_unknown_field(b, event, name);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* -ENOMEM */
static int rows_gather(const Batch *b, BatchRows *rows) {
        size_t n = 0;

        if (b->shown.n > rows->room && list_grow(&rows->list, &rows->room, b->shown.n, sizeof(*rows->list)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < b->shown.n; i++) {
                rows->list[n] = (uint32_t)i;
                n += (size_t)(b->events[i] == rows->event) & (size_t)(b->records[i] == PERFD_SAMPLE);
        }
        rows->n = n;
        rows->number = b->number;
        return 0;
}

/* NULL: no memory. */
static const BatchRows *rows_get(Batch *b, uint32_t event) {
        BatchRows **bucket = &b->rows[event % BATCH_BUCKETS], *rows = *bucket;

        while (rows && rows->event != event)
                rows = rows->next;
        if (!rows) {
                rows = calloc(1, sizeof(*rows));
                if (!rows)
                        return NULL;
                rows->event = event;
                rows->next = *bucket;
                *bucket = rows;
        }
        return rows->number == b->number || rows_gather(b, rows) == 0 ? rows : NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* One whose layout is not known. PERFD_E_PROTOCOL, -ENOMEM */
static int value_walk(Batch *b, size_t row, size_t index, uint64_t *to, size_t count) {
        const perfd_item *item = perfd_batch_item(&b->shown, b->shown.items[row]);
        perfd_value v;

        if (!perfd_item_get(item, index, &v) || v.count != count)
                return b->client->stream->item.state == ITEM_WRONG ? b->client->stream->item.error : PERFD_E_PROTOCOL;
        memcpy(to, v.numbers, count * sizeof(*to));
        return 0;
}

/* All with the same layout, one behind the other. */
static void column_gather_alike(const Batch *b, BatchColumn *column, size_t first) {
        const size_t count = column->shown.count, offset = b->numbers[0] + first * sizeof(uint64_t);

        if (count == 1)
                for (size_t i = 0; i < b->shown.n; i++)
                        column->values[i] = wire_get_fixed64(b->items[i] + offset);
        else
                for (size_t i = 0; i < b->shown.n; i++)
                        numbers_copy(column->values + i * count, b->items[i] + offset, count);
}

static int column_gather(Batch *b, BatchColumn *column, const BatchRows *rows, size_t first) {
        const size_t count = column->shown.count;
        int r = 0;

        if (b->only) {
                column_gather_alike(b, column, first);
                return 0;
        }
        for (size_t k = 0; k < rows->n && r == 0; k++) {
                size_t row = rows->list[k];

                if (b->numbers[row] > 0)
                        numbers_copy(column->values + k * count, b->items[row] + b->numbers[row] + first * sizeof(uint64_t), count);
                else
                        r = value_walk(b, row, column->index, column->values + k * count, count);
        }
        return r;
}

static BatchColumn *column_find(Batch *b, uint32_t event, size_t index) {
        BatchColumn **bucket = &b->columns[(event * 31 + index) % BATCH_BUCKETS], *column = *bucket;

        while (column && (column->event != event || column->index != index))
                column = column->next;
        if (column)
                return column;
        column = calloc(1, sizeof(*column));
        if (!column)
                return NULL;
        column->event = event;
        column->index = index;
        column->next = *bucket;
        return *bucket = column;
}

/* Each number takes a byte at least: a descriptor that promises more than the packet has gets no memory for it. */
static bool has_bytes_for(const Batch *b, size_t n_numbers) {
        return n_numbers == 0 || n_numbers <= (size_t)(b->end - b->items[0]);
}

static int column_fill(Batch *b, const Descriptor *d, const perfd_field *f, BatchColumn *column) {
        const BatchRows *rows = rows_get(b, d->event.id);
        size_t needed;

        if (!rows)
                return -ENOMEM;
        needed = rows->n * f->count;
        if (!has_bytes_for(b, needed))
                return PERFD_E_PROTOCOL;
        if (needed > column->room && list_grow(&column->values, &column->room, needed, sizeof(uint64_t)) < 0)
                return -ENOMEM;
        column->shown = (perfd_column){ .field = f, .n = rows->n, .count = f->count, .values = column->values, .rows = rows->list };
        return rows->n > 0 ? column_gather(b, column, rows, d->places[f->index].first) : 0;
}

int perfd_batch_column(const perfd_batch *batch, uint32_t event, const char *field, const perfd_column **ret_column) {
        Batch *b = (Batch *)(uintptr_t)batch; /* whose first member it is */
        const Descriptor *d = descriptors_find(&b->client->stream->descriptors, event);
        const perfd_field *f = NULL;
        BatchColumn *column;
        int r;

        if (!d)
                return fail_event(b, event);
        r = find_field(b, &d->event, field, &f);
        if (r != 0)
                return r;
        column = column_find(b, event, f->index);
        if (!column)
                return client_fail_memory(b->client);
        if (column->number != b->number) {
                r = column_fill(b, d, f, column);
                if (r != 0)
                        return r == -ENOMEM ? client_fail_memory(b->client) : stream_fail(b->client, r, WRONG_ITEM);
                column->number = b->number;
        }
        *ret_column = &column->shown;
        return 0;
}
