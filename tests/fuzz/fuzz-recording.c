/*
 * Bytes as a recording in perf's format: all of its records and sections. Whatever they say, reading ends, what is given lies within what
 * was given, and each damage has a text and a place.
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

typedef struct Seen {
        int depth;
        uint64_t sum;
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

static void read_all(perfd_recording *r, Seen *seen) {
        const perfd_recorded *record;
        int code = 0;

        for (int i = 0; i < RECORDS_MAX && (code = perfd_recording_next(r, &record)) == 0; i++) {
                on_bytes(seen, NULL, (perfd_text){ .bytes = record->bytes, .length = record->size });
                read_sample(r, record, seen);
        }
        MUST(code == 0 || code == PERFD_E_ENDED);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        perfd_recording *r = perfd_recording_new();
        Seen seen = { .depth = 0 };

        MUST(r);
        if (perfd_recording_open_bytes(r, bytes, length) == 0)
                read_all(r, &seen);
        else
                MUST(perfd_recording_error(r)[0]);
        perfd_recording_free(r);
        return 0;
}
