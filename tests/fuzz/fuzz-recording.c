/*
 * Bytes as a recording in perf's format: all of its records and sections, in each order. Whatever they say, reading ends, what is given lies
 * within what was given, and each damage has a text and a place; each order gives the same records, and keeps what it promises.
 */
#include <stdlib.h>
#include <string.h>

#include "client/perfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

#define RECORDS_MAX 100000 /* of what a few compressed bytes become */

#define KERNEL_RECORDS 64 /* types from there on are perf's own */
#define COMM 3   /* PERF_RECORD_COMM */
#define SAMPLE 9 /* PERF_RECORD_SAMPLE */

typedef struct Seen {
        int depth;
        uint64_t sum;
        uint64_t n, bytes;   /* records, and a sum of what they have */
        bool has_ended;
        size_t n_events;     /* when the first record of the kernel came */
        bool has_late_event; /* one came behind it, by which the same bytes may have another time */
        uint64_t time, sample_time; /* ns: the latest of all, and of samples */
} Seen;

static void on_begin(void *userdata, const char *key) {
        ((Seen *)userdata)->depth++;
}

static void on_end(void *userdata) {
        MUST(--((Seen *)userdata)->depth >= 0);
}

static void on_bytes(void *userdata, const char *key, perfd_text text) {
        for (size_t i = 0; i < text.length; i++)
                ((Seen *)userdata)->sum += (uint8_t)text.bytes[i];
}

static void on_number(void *userdata, const char *key, uint64_t number) {
        ((Seen *)userdata)->sum += number;
}

static void on_flag(void *userdata, const char *key, bool is) {
        ((Seen *)userdata)->sum += is;
}

static const perfd_feature_visitor visitor = { on_begin, on_end, on_begin, on_end, on_bytes, on_number, on_bytes, on_flag };

/* What it leads to is there. */
static void read_sample(perfd_recording *r, const perfd_recorded *record, Seen *seen) {
        perfd_recorded_sample s;
        perfd_recorded_id id;
        const perfd_item *item;
        perfd_value v;

        if (perfd_recording_id(r, record, &id) == 0)
                seen->sum += id.time;
        if (perfd_recording_sample(r, record, &s) != 0)
                return;
        for (size_t i = 0; i < s.n_callchain; i++)
                seen->sum += s.callchain[i];
        for (size_t i = 0; i < s.n_branches; i++)
                seen->sum += s.branches[i].to;
        for (size_t i = 0; i < s.n_values; i++)
                seen->sum += s.values[i].value;
        for (size_t i = 0; i < s.registers_user.n; i++)
                seen->sum += s.registers_user.values[i];
        for (size_t i = 0; i < s.registers_intr.n; i++)
                seen->sum += s.registers_intr.values[i];
        on_bytes(seen, NULL, s.raw);
        on_bytes(seen, NULL, s.stack_user);
        on_bytes(seen, NULL, s.aux);
        if (perfd_recording_item(r, record, &item) != 0)
                return;
        for (size_t i = 0; perfd_item_get(item, i, &v); i++)
                seen->sum += v.count > 0 && v.numbers ? v.numbers[v.count - 1] : v.text.length;
}

/* Never backwards; and no comm behind a sample that has its time or a later one. */
static void check_order(perfd_recording *r, const perfd_recorded *record, perfd_recording_order order, Seen *seen) {
        perfd_recorded_id id;

        if (record->type >= KERNEL_RECORDS)
                return;
        if (seen->n_events == 0)
                seen->n_events = perfd_recording_n_events(r);
        seen->has_late_event = seen->has_late_event || perfd_recording_n_events(r) != seen->n_events;
        if (order == PERFD_RECORDING_ORDER_FILE || seen->has_late_event || perfd_recording_id(r, record, &id) != 0 || id.time == 0 || id.time == UINT64_MAX)
                return;
        MUST(order != PERFD_RECORDING_ORDER_TIME || id.time >= seen->time);
        MUST(order != PERFD_RECORDING_ORDER_CAUSAL || record->type != COMM || id.time > seen->sample_time);
        seen->time = id.time;
        if (record->type == SAMPLE && id.time > seen->sample_time)
                seen->sample_time = id.time;
}

static void read_all(perfd_recording *r, perfd_recording_order order, Seen *seen) {
        const perfd_recorded *record;
        int code = 0;

        for (int i = 0; i < RECORDS_MAX && (code = perfd_recording_next(r, &record)) == 0; i++) {
                seen->sum = 0;
                on_bytes(seen, NULL, (perfd_text){ .bytes = record->bytes, .length = record->size });
                seen->bytes += seen->sum + record->type + record->misc + record->offset + record->is_compressed;
                seen->n++;
                check_order(r, record, order, seen);
                read_sample(r, record, seen);
        }
        MUST(code == 0 || code == PERFD_E_ENDED);
        seen->has_ended = code == PERFD_E_ENDED;
        for (unsigned bit = 0; bit < 256; bit++)
                if (perfd_recording_has_feature(r, bit))
                        MUST(perfd_recording_visit_feature(r, bit, &visitor, seen) == 0 && seen->depth == 0);
        for (size_t i = 0; i < perfd_recording_n_events(r); i++) {
                const perfd_recorded_event *e = perfd_recording_event(r, i);

                for (size_t k = 0; k < e->n_ids; k++)
                        seen->sum += e->ids[k];
                MUST(strlen(e->name) > 0 || e->name[0] == '\0');
        }
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++)
                MUST(perfd_recording_damage(r, i)->text[0]);
}

static Seen read_in(const uint8_t *bytes, size_t length, perfd_recording_order order, bool has_late_event) {
        perfd_recording *r = perfd_recording_new();
        Seen seen = { .has_late_event = has_late_event };

        MUST(r);
        MUST(perfd_recording_set_order(r, order) == 0);
        MUST(perfd_recording_set_order_memory(r, PERFD_RECORDING_ORDER_MEMORY_MIN) == 0);
        if (perfd_recording_open_bytes(r, bytes, length) == 0)
                read_all(r, order, &seen);
        else
                MUST(perfd_recording_error(r)[0]);
        perfd_recording_free(r);
        return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        const Seen seen = read_in(bytes, length, PERFD_RECORDING_ORDER_FILE, false);

        for (int order = PERFD_RECORDING_ORDER_CAUSAL; seen.has_ended && order <= PERFD_RECORDING_ORDER_TIME; order++) {
                const Seen other = read_in(bytes, length, (perfd_recording_order)order, seen.has_late_event);

                MUST(other.has_ended && other.n == seen.n && other.bytes == seen.bytes);
        }
        return 0;
}
