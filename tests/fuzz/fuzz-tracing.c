/*
 * Tracing data and samples of its tracepoint, in a recording of either byte order that is whole otherwise: so that whatever the fuzzer
 * changes is in formats and raw bytes. Whatever these say, each field can be read and printed, and lies within what was given.
 *
 *     flags u8: 1 other byte order, 2 the text is all of the section, 4 the text lacks its first lines
 *     length u16, little-endian | text | for each sample: length u8, raw bytes
 */
#include <byteswap.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

#define ROOM ((size_t)1 << 20) /* bytes */
#define SAMPLES_MAX 256
#define ATTR_SIZE 128
#define DATA_AT (104 + ATTR_SIZE + 16)
#define SAMPLE 9           /* PERF_RECORD_SAMPLE */
#define SAMPLE_TYPE 0x406  /* TID, TIME, RAW */
#define FIRST_LINES "name: e\nID: 7\nformat:\n"

enum { OTHER_ORDER = 1, WHOLE_SECTION = 2, LACKS_FIRST_LINES = 4 };

typedef struct Made {
        uint8_t *bytes;
        size_t n;
        bool is_swapped;
} Made;

static void put(Made *m, const void *bytes, size_t n) {
        MUST(m->n + n <= ROOM);
        if (n > 0)
                memcpy(m->bytes + m->n, bytes, n);
        m->n += n;
}

static void put_u16(Made *m, uint16_t v) {
        v = m->is_swapped ? bswap_16(v) : v;
        put(m, &v, sizeof(v));
}

static void put_u32(Made *m, uint32_t v) {
        v = m->is_swapped ? bswap_32(v) : v;
        put(m, &v, sizeof(v));
}

static void put_u64(Made *m, uint64_t v) {
        v = m->is_swapped ? bswap_64(v) : v;
        put(m, &v, sizeof(v));
}

static void put_u64s(Made *m, const uint64_t *values, size_t n) {
        for (size_t i = 0; i < n; i++)
                put_u64(m, values[i]);
}

/* ---- the recording -------------------------------------------------------------------------------------------------------------- */

static void put_head(Made *m, uint64_t data_size) {
        static const char magic[] = "PERFILE2";
        const uint64_t sections[] = { 104, ATTR_SIZE + 16, 104, ATTR_SIZE + 16, DATA_AT, data_size, 0, 0, 2, 0, 0, 0 };
        const uint64_t attr[] = { 7, 1, SAMPLE_TYPE, 0, 0 }; /* config, period, sample_type, read_format, flags */
        const uint64_t rest[(ATTR_SIZE - 48) / 8 + 2] = { 0 }; /* and no ids */

        for (size_t i = 0; i < 8; i++)
                put(m, &magic[m->is_swapped ? 7 - i : i], 1);
        put_u64s(m, sections, sizeof(sections) / sizeof(*sections));
        put_u32(m, 2); /* PERF_TYPE_TRACEPOINT */
        put_u32(m, ATTR_SIZE);
        put_u64s(m, attr, sizeof(attr) / sizeof(*attr));
        put_u64s(m, rest, sizeof(rest) / sizeof(*rest));
}

static void put_sample(Made *m, const uint8_t *raw, size_t n, uint64_t time) {
        static const uint8_t zeros[8];
        const size_t padding = (8 - (n + 4) % 8) % 8;

        put_u32(m, SAMPLE);
        put_u16(m, 2); /* PERF_RECORD_MISC_USER */
        put_u16(m, (uint16_t)(8 + 8 + 8 + 4 + n + padding));
        put_u32(m, 100);
        put_u32(m, 101);
        put_u64(m, time);
        put_u32(m, (uint32_t)(n + padding));
        put(m, raw, n);
        put(m, zeros, padding);
}

static void put_tracing(Made *m, int flags, const uint8_t *text, size_t n) {
        static const char magic[] = "\027\010\104tracing" "0.6";
        const size_t n_first = flags & LACKS_FIRST_LINES ? sizeof(FIRST_LINES) - 1 : 0;
        const uint8_t order[] = { (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != m->is_swapped, 8 };

        if ((flags & WHOLE_SECTION) != 0) {
                put(m, text, n);
                return;
        }
        put(m, magic, sizeof(magic));
        put(m, order, sizeof(order));
        put_u32(m, 4096);
        put(m, "header_page", sizeof("header_page"));
        put_u64(m, 0);
        put(m, "header_event", sizeof("header_event"));
        put_u64(m, 0);
        put_u32(m, 0); /* of ftrace's own */
        put_u32(m, 1);
        put(m, "group", sizeof("group"));
        put_u32(m, 1);
        put_u64(m, n_first + n);
        put(m, FIRST_LINES, n_first);
        put(m, text, n);
}

/* ---- what is read of it --------------------------------------------------------------------------------------------------------- */

static uint64_t sum_of(const char *bytes, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += (uint8_t)bytes[i];
        return sum;
}

static uint64_t read_field(const perfd_item *item, size_t i, const perfd_value *v) {
        char text[64];
        uint64_t sum = strlen(v->field->name) + strlen(v->field->type) + sum_of(v->text.bytes, v->text.length);
        const size_t n = perfd_value_render(v, text, sizeof(text));

        MUST(strlen(text) == (n < sizeof(text) ? n : sizeof(text) - 1) || memchr(text, '\0', sizeof(text)));
        for (size_t k = 0; v->numbers && k < v->count; k++)
                sum += v->numbers[k] + perfd_field_render(v->field, v->numbers[k], text, sizeof(text));
        sum += perfd_item_render(item, i, NULL, text, sizeof(text));
        MUST(memchr(text, '\0', sizeof(text)));
        return sum;
}

static void read_all(perfd_recording *r) {
        const perfd_recorded *record;
        const perfd_item *item;
        volatile uint64_t sum = 0; /* so that all is read */
        perfd_value v;
        int code, n = 0;

        while ((code = perfd_recording_next(r, &record)) == 0) {
                n++;
                MUST(record->type == SAMPLE);
                code = perfd_recording_item(r, record, &item);
                MUST(code == 0 || (code == PERFD_E_INVALID && perfd_recording_n_damages(r) > 0));
                if (code != 0)
                        continue;
                MUST(perfd_item_tid(item) == 101 && perfd_item_time(item) == (uint64_t)n);
                for (size_t i = 0; perfd_item_get(item, i, &v); i++)
                        sum += read_field(item, i, &v);
                sum += sum_of(perfd_item_raw(item).bytes, perfd_item_raw(item).length);
        }
        MUST(code == PERFD_E_ENDED);
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++)
                MUST(perfd_recording_damage(r, i)->text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        const int flags = length > 0 ? bytes[0] : 0;
        size_t n_text = length >= 3 ? (size_t)(bytes[1] | bytes[2] << 8) : 0, at = 3;
        const uint64_t section_size_at = 8;
        Made m = { .bytes = malloc(ROOM), .is_swapped = (flags & OTHER_ORDER) != 0 }, table;
        perfd_recording *r = perfd_recording_new();
        uint64_t data_size;
        uint8_t *exact;

        MUST(m.bytes && r);
        n_text = length < 3 ? 0 : n_text < length - 3 ? n_text : length - 3;
        put_head(&m, 0);
        at += n_text;
        put_sample(&m, NULL, 0, 1); /* without one the recording was cut off, and its end is sought */
        for (uint64_t i = 2; at < length && i <= SAMPLES_MAX; i++) {
                const size_t n = bytes[at] < length - at - 1 ? bytes[at] : length - at - 1;

                put_sample(&m, bytes + at + 1, n, i);
                at += 1 + n;
        }
        data_size = m.n - DATA_AT;
        table = m;
        put_u64(&m, m.n + 16);
        put_u64(&m, 0);
        put_tracing(&m, flags, length < 3 ? bytes : bytes + 3, n_text);
        table.n += section_size_at;
        put_u64(&table, m.n - DATA_AT - data_size - 16);
        table.n = 0;
        put_head(&table, data_size);

        exact = malloc(m.n); /* so that a sanitizer sees one byte more */
        MUST(exact);
        memcpy(exact, m.bytes, m.n);
        free(m.bytes);
        MUST(perfd_recording_open_bytes(r, exact, m.n) == 0);
        read_all(r);
        perfd_recording_free(r);
        free(exact);
        return 0;
}
