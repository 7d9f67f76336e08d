/*
 * The short way from a sample to an item, which nearly all samples of a recording can go: what an item shows is put where its accessors look,
 * and is neither encoded nor decoded. Numbers are widened into the item's own list; texts stay in the recording's copy of the record. What
 * differs from record to record in more than its values (dynamic arrays), or says more than most do (registers, branches, counters), goes the
 * long way, and so does what is damaged: only there it is said what is wrong.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/item/item.h"
#include "client/recorded/recorded.h"
#include "daemon/encode/item.h"
#include "daemon/model/field.h"
#include "proto/item-fields.h"

#define KNOWN                                                                                                                            \
        (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |             \
         PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)
#define TEXTS_MAX ((size_t)64 << 10) /* bytes: more only if they overlap, and then there may be no room for them in an item */

bool recorded_event_is_direct(const perfd_recording *r, const perfd_recorded_event *shown, const EncodePlan *p) {
        if (r->is_swapped || (shown->sample_type & ~(uint64_t)KNOWN) != 0 || p->has_faults)
                return false;
        for (size_t i = 0; i < p->n_fields; i++)
                if (field_is_number(p->fields[i]) && p->fields[i]->place != PLACE_FIXED)
                        return false;
        return true;
}

static int put_numbers(struct perfd_item *item, const EncodePlan *p, const uint8_t *raw) {
        const size_t n = item->descriptor->n_numbers;
        uint64_t *to;

        if (n > item->numbers.room && list_grow(&item->numbers.list, &item->numbers.room, n, sizeof(uint64_t)) < 0)
                return -ENOMEM;
        to = item->numbers.list;
        for (const NumberRun *run = p->runs, *end = run + p->n_runs; run < end; run++) {
                const uint8_t *from = raw + run->offset;

                if (run->element_size == sizeof(uint64_t))
                        memcpy(to, from, run->n * sizeof(uint64_t));
                else
                        for (uint32_t i = 0; i < run->n; i++)
                                to[i] = field_load(from + (size_t)i * run->element_size, run->element_size, run->is_signed);
                to += run->n;
        }
        item->numbers.n = n;
        item->numbers.packed = NULL;
        return 0;
}

/* 0; RECORDED_NOT_DIRECT: one lies outside; -ENOMEM */
static int put_texts(struct perfd_item *item, const EncodePlan *p, const perfd_text *raw) {
        size_t sum = 0;

        if (p->n_texts > item->texts_room && list_grow(&item->texts, &item->texts_room, p->n_texts, sizeof(perfd_text)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_texts; i++) {
                const uint8_t *text;
                size_t length;

                if (field_text(p->texts[i], (const uint8_t *)raw->bytes, raw->length, &text, &length) != 0)
                        return RECORDED_NOT_DIRECT;
                item->texts[i] = (perfd_text){ .bytes = (const char *)text, .length = length };
                sum += length;
        }
        item->n_texts = p->n_texts;
        return sum <= TEXTS_MAX ? 0 : RECORDED_NOT_DIRECT;
}

/* Addresses of other contexts are dropped, as in an item of the daemon. */
static int put_callchain(Numbers *to, const perfd_recorded_sample *s, uint64_t wanted) {
        uint64_t context = 0;

        numbers_clear(to);
        if (s->n_callchain > to->room && list_grow(&to->list, &to->room, s->n_callchain, sizeof(uint64_t)) < 0)
                return -ENOMEM;
        for (uint64_t i = 0; i < s->n_callchain; i++)
                if (s->callchain[i] >= (uint64_t)PERF_CONTEXT_MAX)
                        context = s->callchain[i];
                else if (context == wanted)
                        to->list[to->n++] = s->callchain[i];
        return 0;
}

static void put_parts(struct perfd_item *item, const perfd_recorded_sample *s) {
        item->has_parts = false; /* they are decoded */
        item->parts.has = 0;
        if ((s->id.has & PERF_SAMPLE_ID) != 0 && s->id.id != 0) {
                item->parts.has |= (uint64_t)1 << (ITEM_SAMPLE_ID - ITEM_READ_VALUES);
                item->parts.id = s->id.id;
        }
        if ((s->id.has & PERF_SAMPLE_STREAM_ID) != 0 && s->id.stream_id != 0) {
                item->parts.has |= (uint64_t)1 << (ITEM_STREAM_ID - ITEM_READ_VALUES);
                item->parts.stream_id = s->id.stream_id;
        }
}

static int put_rest(struct perfd_item *item, const EncodePlan *p, const perfd_recorded_sample *s) {
        int code = put_callchain(&item->kernel_callchain, s, (uint64_t)PERF_CONTEXT_KERNEL);

        if (code == 0)
                code = put_callchain(&item->user_callchain, s, (uint64_t)PERF_CONTEXT_USER);
        put_parts(item, s);
        numbers_clear(&item->faults);
        item->ip = s->ip;
        item->address = s->addr;
        item->period = s->period;
        item->raw = p->payload == PAYLOAD_FIELDS || s->raw.length == 0 ? (perfd_text){ .bytes = "" } : s->raw;
        item->has_rest = item->parts.has != 0 || s->ip != 0 || s->addr != 0 || s->period != 0 || item->raw.length > 0 ||
                         item->kernel_callchain.n > 0 || item->user_callchain.n > 0;
        return code;
}

int recorded_sample_place(const EncodePlan *p, const perfd_recorded_sample *s, struct perfd_item *item) {
        int code = 0;

        if (s->raw.length < p->min_size)
                return RECORDED_NOT_DIRECT;
        item->descriptor = descriptors_find(item->descriptors, p->event_id);
        item->places = item->descriptor->places;
        item->state = ITEM_INDEXED;
        item->bytes = item->end = NULL;
        item->record = PERFD_SAMPLE;
        item->event = p->event_id;
        item->time = s->id.time;
        item->cpu = s->id.cpu;
        item->pid = s->id.pid;
        item->tid = s->id.tid;
        code = put_numbers(item, p, (const uint8_t *)s->raw.bytes);
        if (code == 0)
                code = put_texts(item, p, &s->raw);
        return code == 0 ? put_rest(item, p, s) : code;
}
