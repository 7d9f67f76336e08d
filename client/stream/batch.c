/*
 * Items to arrays. Items that are alike follow each other with the same length: then neither the place of the next one nor what is in
 * it waits for something that was loaded, and the loop runs as fast as memory is read.
 */
#include "client/stream/batch.h"

#include <stdlib.h>
#include <string.h>

#include "client/stream/part.h"

#define HEADER_MAX 4 /* bytes of the key and the length of an item whose numbers are found by its layout */

/* What a walk over an item finds for the arrays. */
typedef struct Head {
        uint64_t time, lost;
        uint32_t event, cpu, pid, tid;
        perfd_record record;
        uint8_t numbers;
} Head;

Batch *batch_new(perfd_client *c) {
        Batch *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        b->client = c;
        b->shown = (perfd_batch){
                .times = b->times,
                .events = b->events,
                .cpus = b->cpus,
                .pids = b->pids,
                .tids = b->tids,
                .records = b->records,
                .items = (const perfd_packed_item *const *)(const void *)b->items,
        };
        return b;
}

void batch_begin(Batch *b, const uint8_t *end) {
        b->shown.n = b->shown.n_samples = 0;
        b->shown.lost = 0;
        b->end = end;
        b->only = NULL;
        b->number++;
        b->error = 0;
}

/* lost and lost_samples: field 1 is how many. */
static uint64_t lost_of(const WireField *record) {
        Wire w = wire_of(record->bytes, record->length);
        WireField f = { .key = 0 };
        uint64_t lost = 0;

        while (wire_next(&w, &f))
                if (f.key == WIRE_KEY(1, WIRE_VARINT))
                        lost = f.number;
        return lost;
}

static void head_set(Head *h, const WireField *f) {
        switch (f->key) {
        case WIRE_KEY(ITEM_TIME, WIRE_FIXED64):
                h->time = f->number;
                return;
        case WIRE_KEY(ITEM_EVENT, WIRE_FIXED32):
                h->event = (uint32_t)f->number;
                return;
        case WIRE_KEY(ITEM_CPU, WIRE_FIXED32):
                h->cpu = (uint32_t)f->number;
                return;
        case WIRE_KEY(ITEM_PID, WIRE_FIXED32):
                h->pid = (uint32_t)f->number;
                return;
        case WIRE_KEY(ITEM_TID, WIRE_FIXED32):
                h->tid = (uint32_t)f->number;
                return;
        case WIRE_KEY(ITEM_NUMBERS, WIRE_BYTES): /* a second list, behind that of the layout */
        case WIRE_KEY(ITEM_NUMBERS, WIRE_FIXED64):
                h->numbers = 0;
                return;
        case WIRE_KEY(ITEM_LOST, WIRE_BYTES):
        case WIRE_KEY(ITEM_LOST_SAMPLES, WIRE_BYTES):
                h->lost = lost_of(f);
        }
        if ((f->key & 7) == WIRE_BYTES && f->key >> 3 >= ITEM_COMM && f->key >> 3 <= ITEM_UNKNOWN)
                h->record = (perfd_record)(PERFD_COMM + (f->key >> 3) - ITEM_COMM);
}

/* The next one: a sample of this layout, of whose numbers the place is kept. */
static inline void batch_put(Batch *b, const uint8_t *field, const uint8_t *bytes, const ItemLayout *l) {
        size_t i = b->shown.n++;

        b->times[i] = wire_get_fixed64(bytes + l->time);
        b->events[i] = l->event;
        b->cpus[i] = wire_get_fixed32(bytes + l->cpu) & l->cpu_mask;
        b->pids[i] = wire_get_fixed32(bytes + l->pid) & l->task_mask;
        b->tids[i] = wire_get_fixed32(bytes + l->tid) & l->task_mask;
        b->items[i] = field;
        b->numbers[i] = bytes - field <= HEADER_MAX ? (uint8_t)(bytes - field + l->numbers) : 0;
        b->records[i] = PERFD_SAMPLE;
        b->shown.n_samples++;
}

static void batch_put_head(Batch *b, const uint8_t *field, const Head *h) {
        size_t i = b->shown.n++;

        b->times[i] = h->time;
        b->events[i] = h->event;
        b->cpus[i] = h->cpu;
        b->pids[i] = h->pid;
        b->tids[i] = h->tid;
        b->items[i] = field;
        b->numbers[i] = h->record == PERFD_SAMPLE ? h->numbers : 0;
        b->records[i] = (uint8_t)h->record;
        b->shown.n_samples += h->record == PERFD_SAMPLE;
        b->shown.lost += h->record == PERFD_LOST || h->record == PERFD_LOST_SAMPLES ? h->lost : 0;
}

/* Behind texts of less than 128 bytes. */
static inline const uint8_t *skip_texts(const uint8_t *at, const uint8_t *end) {
        while (end - at >= 2 && *at == WIRE_KEY(ITEM_TEXTS, WIRE_BYTES)) {
                size_t length = wire_load(at + 1);

                if (length >= 0x80 || length > (size_t)(end - at - 2))
                        break;
                at += 2 + length;
        }
        return at;
}

/* What its layout, of which it may have none, does not say: whatever it is. */
static void batch_walk(Batch *b, const uint8_t *field, const uint8_t *bytes, const uint8_t *end, const ItemLayout *l) {
        Descriptors *d = &b->client->stream->descriptors;
        Wire w = { .at = bytes, .end = end };
        WireField f = { .key = 0 };
        Head h = { .record = PERFD_SAMPLE };

        if (l) {
                h = (Head){ .time = wire_get_fixed64(bytes + l->time), .event = l->event,
                            .cpu = wire_get_fixed32(bytes + l->cpu) & l->cpu_mask,
                            .pid = wire_get_fixed32(bytes + l->pid) & l->task_mask,
                            .tid = wire_get_fixed32(bytes + l->tid) & l->task_mask,
                            .record = PERFD_SAMPLE, .numbers = bytes - field <= HEADER_MAX ? (uint8_t)(bytes - field + l->numbers) : 0 };
                w.at += l->size;
        }
        while (wire_next(&w, &f))
                head_set(&h, &f);
        if (w.malformed)
                b->error = PERFD_E_PROTOCOL;
        if (!l && h.record == PERFD_SAMPLE)
                layouts_learn(d, h.event, h.cpu, h.tid, bytes, end);
        batch_put_head(b, field, &h);
}

bool batch_add(Batch *b, const uint8_t *field, const uint8_t *bytes, const uint8_t *end) {
        Descriptors *d = &b->client->stream->descriptors;
        const ItemLayout *l = d->layout;

        if (b->shown.n == PERFD_BATCH_MAX)
                return false;
        if (!l || !layout_matches(l, bytes, (size_t)(end - bytes)))
                l = layouts_find(d, bytes, end);
        b->only = NULL;
        if (l && skip_texts(bytes + l->size, end) == end)
                batch_put(b, field, bytes, l);
        else
                batch_walk(b, field, bytes, end, l);
        return true;
}

/*
 * All that follow with this layout and length, at most n; how many. The first word has the field's own key and length too.
 * is_full: nothing is left out in them, so that all places are known to the compiler.
 */
static inline __attribute__((always_inline)) size_t batch_put_alike(Batch *b, const uint8_t *field, size_t n, const ItemLayout *layout,
                                                                   const WireLike *like, bool is_full) {
        const ItemLayout l = *layout;
        const size_t size = like->size, begin = like->begin, first = b->shown.n, time = LAYOUT_TIME, cpu = is_full ? LAYOUT_CPU : l.cpu,
                     pid = is_full ? LAYOUT_PID : l.pid, tid = is_full ? LAYOUT_TID : l.tid, second = LAYOUT_WORD_2,
                     third = is_full ? LAYOUT_WORD_3 : l.at[2], fourth = is_full ? LAYOUT_WORD_4 : l.at[3];
        const uint64_t mask = like->mask | l.masks[0] << 8 * begin, value = like->head | l.values[0] << 8 * begin;
        const uint32_t event = l.event, cpu_mask = is_full ? UINT32_MAX : l.cpu_mask, task_mask = is_full ? UINT32_MAX : l.task_mask;
        size_t i = first;

        for (n += first; i < n; i++, field += size) {
                const uint8_t *bytes = field + begin;
                uint64_t other = (layout_load(field) ^ value) & mask;

                other |= (layout_load(bytes + second) ^ l.values[1]) & l.masks[1];
                other |= (layout_load(bytes + third) ^ l.values[2]) & l.masks[2];
                other |= (layout_load(bytes + fourth) ^ l.values[3]) & l.masks[3];
                if (other != 0)
                        break;
                b->times[i] = wire_get_fixed64(bytes + time);
                b->events[i] = event;
                b->cpus[i] = wire_get_fixed32(bytes + cpu) & cpu_mask;
                b->pids[i] = wire_get_fixed32(bytes + pid) & task_mask;
                b->tids[i] = wire_get_fixed32(bytes + tid) & task_mask;
                b->items[i] = field;
        }
        return i - first;
}

static void batch_take_alike(Batch *b, Wire *w, const ItemLayout *l, const WireLike *like) {
        const size_t first = b->shown.n, room = PERFD_BATCH_MAX - first, there = (size_t)(w->end - w->at) / like->size;
        const size_t most = room < there ? room : there;
        size_t n = l->cpu_mask & l->task_mask ? batch_put_alike(b, w->at, most, l, like, true)
                                              : batch_put_alike(b, w->at, most, l, like, false);

        memset(b->records + first, PERFD_SAMPLE, n);
        memset(b->numbers + first, (int)(like->begin + l->numbers), n);
        b->shown.n += n;
        b->shown.n_samples += n;
        w->at += n * like->size;
}

size_t batch_take(Batch *b, Wire *w) {
        const Descriptors *d = &b->client->stream->descriptors;
        const size_t first = b->shown.n;
        const ItemLayout *l, *before = NULL;
        WireLike like = WIRE_LIKE_NULL;
        const uint8_t *bytes, *field;

        while (b->shown.n < PERFD_BATCH_MAX) {
                const ItemLayout *only = b->shown.n == 0 ? d->layout : b->only;

                field = w->at;
                if (!wire_take(w, ITEMS_KEY, &like, &bytes))
                        break;
                l = d->layout;
                if (!l || (size_t)(w->at - bytes) != l->whole || !layout_has(l, bytes)) {
                        (void)batch_add(b, field, bytes, w->at);
                        before = NULL;
                        continue;
                }
                batch_put(b, field, bytes, l);
                b->only = only == l ? l : NULL;
                if (before == l) /* the second one: there may be more */
                        batch_take_alike(b, w, l, &like);
                before = l;
        }
        return b->shown.n - first;
}
