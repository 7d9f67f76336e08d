/*
 * The short way from a sample to an item, which nearly all samples of a recording can go: what an item shows is put where its accessors look,
 * and is neither encoded nor decoded. Numbers are widened into the item's own list; texts are in the recording's copy of the raw bytes. What
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

#define FIRST                                                                                                                           \
        (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |             \
         PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define KNOWN (FIRST | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)
#define TEXTS_MAX ((size_t)64 << 10) /* bytes: more only if they overlap, and then there may be no room for them in an item */

/* Of addresses, too, which stay where they are: as in an item, the lowest byte is the first. */
bool recorded_event_is_direct(const perfd_recording *r, const perfd_recorded_event *shown, const EncodePlan *p, size_t *ret_n_first) {
        *ret_n_first = sizeof(uint64_t) * (size_t)__builtin_popcountll(shown->sample_type & FIRST);
        if (r->is_swapped || r->is_big_endian || (shown->sample_type & ~(uint64_t)KNOWN) != 0 || p->has_faults)
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

/* What is not of the event's own fields. */
typedef struct Rest {
        uint64_t id, stream_id;
        const uint8_t *callchain; /* of any alignment */
        uint64_t n_callchain;
        uint64_t first_context;
        perfd_text raw;
} Rest;

static uint64_t take_word(const uint8_t **at) {
        const uint64_t word = field_load(*at, sizeof(word), false);

        *at += sizeof(word);
        return word;
}

static void take_pair(const uint8_t **at, uint32_t *first, uint32_t *second) {
        memcpy(first, *at, sizeof(*first));
        memcpy(second, *at + sizeof(*first), sizeof(*second));
        *at += sizeof(uint64_t);
}

/* Up to the callchain: words, of which there are as many as it has bits. */
static void put_first(struct perfd_item *item, uint64_t type, Rest *rest, const uint8_t *at) {
        uint32_t unused;

        item->ip = item->address = item->period = item->time = 0;
        item->pid = item->tid = 0;
        item->cpu = PERFD_CPU_NONE;
        if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
                (void)take_word(&at);
        if ((type & PERF_SAMPLE_IP) != 0)
                item->ip = take_word(&at);
        if ((type & PERF_SAMPLE_TID) != 0)
                take_pair(&at, &item->pid, &item->tid);
        if ((type & PERF_SAMPLE_TIME) != 0)
                item->time = take_word(&at);
        if ((type & PERF_SAMPLE_ADDR) != 0)
                item->address = take_word(&at);
        if ((type & PERF_SAMPLE_ID) != 0)
                rest->id = take_word(&at);
        if ((type & PERF_SAMPLE_STREAM_ID) != 0)
                rest->stream_id = take_word(&at);
        if ((type & PERF_SAMPLE_CPU) != 0)
                take_pair(&at, &item->cpu, &unused);
        if ((type & PERF_SAMPLE_PERIOD) != 0)
                item->period = take_word(&at);
}

/* Callchain and raw bytes. False: the record ends before they do. */
static bool find_last(uint64_t type, const uint8_t *at, const uint8_t *end, Rest *rest) {
        uint32_t n;

        if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
                if ((size_t)(end - at) < sizeof(uint64_t))
                        return false;
                rest->n_callchain = take_word(&at);
                rest->callchain = at;
                if (rest->n_callchain > (size_t)(end - at) / sizeof(uint64_t))
                        return false;
                at += rest->n_callchain * sizeof(uint64_t);
        }
        if ((type & PERF_SAMPLE_RAW) == 0)
                return true;
        if ((size_t)(end - at) < sizeof(n))
                return false;
        memcpy(&n, at, sizeof(n));
        at += sizeof(n);
        rest->raw = (perfd_text){ .bytes = (const char *)at, .length = n };
        return n <= (size_t)(end - at);
}

static Numbers *chain_of(struct perfd_item *item, uint64_t context) {
        if (context == (uint64_t)PERF_CONTEXT_KERNEL)
                return &item->kernel_callchain;
        return context == (uint64_t)PERF_CONTEXT_USER ? &item->user_callchain : NULL;
}

static bool is_marker(const uint8_t *at) {
        return field_load(at, sizeof(uint64_t), false) >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Those of other contexts are dropped, as in an item of the daemon. Those of one context follow each other, and stay where they are. */
static int put_callchain(struct perfd_item *item, const Rest *rest) {
        const uint8_t *at = rest->callchain, *end = at + rest->n_callchain * sizeof(uint64_t);
        int code = 0;

        while (code == 0 && at < end) {
                Numbers *chain = chain_of(item, is_marker(at) ? take_word(&at) : rest->first_context);
                const uint8_t *first = at;

                while (at < end && !is_marker(at))
                        at += sizeof(uint64_t);
                if (chain)
                        code = numbers_add_packed(chain, first, (size_t)(at - first));
        }
        return code;
}

static void put_ids(struct perfd_item *item, const Rest *rest) {
        item->has_parts = false; /* they are decoded */
        item->parts.has = 0;
        if (rest->id != 0) {
                item->parts.has |= (uint64_t)1 << (ITEM_SAMPLE_ID - ITEM_READ_VALUES);
                item->parts.id = rest->id;
        }
        if (rest->stream_id != 0) {
                item->parts.has |= (uint64_t)1 << (ITEM_STREAM_ID - ITEM_READ_VALUES);
                item->parts.stream_id = rest->stream_id;
        }
}

/* is_passing: the record may go before the item does. */
static int put_rest(struct perfd_item *item, const EncodePlan *p, const Rest *rest, bool is_passing) {
        int code = 0;

        numbers_clear(&item->kernel_callchain);
        numbers_clear(&item->user_callchain);
        if (rest->n_callchain > 0)
                code = put_callchain(item, rest);
        if (code == 0 && is_passing)
                code = numbers_settle(&item->kernel_callchain);
        if (code == 0 && is_passing)
                code = numbers_settle(&item->user_callchain);
        put_ids(item, rest);
        numbers_clear(&item->faults);
        item->raw = p->payload == PAYLOAD_FIELDS || rest->raw.length == 0 ? (perfd_text){ .bytes = "" } : rest->raw;
        item->has_rest = item->parts.has != 0 || item->ip != 0 || item->address != 0 || item->period != 0 || item->raw.length > 0 ||
                         item->kernel_callchain.n > 0 || item->user_callchain.n > 0;
        return code;
}

/* What asks for a feature reads elsewhere in the file. */
static void keep_raw(perfd_recording *r, const EncodePlan *p, Rest *rest) {
        if ((p->n_texts == 0 && p->payload == PAYLOAD_FIELDS) || rest->raw.length == 0)
                return;
        memcpy(r->scratch, rest->raw.bytes, rest->raw.length);
        rest->raw.bytes = (const char *)r->scratch;
}

int recorded_sample_place(perfd_recording *r, const perfd_recorded *record, const Event *of, const RecordedEvent *e, struct perfd_item *item) {
        const EncodePlan *p = e->encode;
        const uint64_t type = of->shown.sample_type;
        const size_t n_first = e->n_first;
        const uint8_t *at = record->bytes, *end = at + record->size;
        Rest rest = { .first_context = recorded_first_context(record->misc), .raw = { .bytes = "" } };
        int code;

        if (record->size < n_first || record->size > RECORD_MAX || !find_last(type, at + n_first, end, &rest) || rest.raw.length < p->min_size)
                return RECORDED_NOT_DIRECT;
        keep_raw(r, p, &rest);
        item->descriptor = descriptors_find(item->descriptors, p->event_id);
        item->places = item->descriptor->places;
        item->state = ITEM_INDEXED;
        item->bytes = item->end = NULL;
        item->record = PERFD_SAMPLE;
        item->event = p->event_id;
        put_first(item, type, &rest, at);
        code = put_numbers(item, p, (const uint8_t *)rest.raw.bytes);
        if (code == 0)
                code = put_texts(item, p, &rest.raw);
        return code == 0 ? put_rest(item, p, &rest, source_is_passing(&r->source, record->bytes)) : code;
}
