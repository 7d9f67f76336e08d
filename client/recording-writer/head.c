/*
 * What is not a record. A file is laid out as
 *
 *      header | attrs, and room for late ones | their ids | sections | where they are | records | where the sections are | SAMPLE_TIME
 *
 * so that a file whose writer was killed has attrs and sections, too: until it is closed the size of the records in its header is 0, and
 * its reader looks before the records for where the sections are. EVENT_DESC is written anew behind the records if events came late. A pipe has
 * records for all of that.
 */
#include <errno.h>
#include <unistd.h>

#include "client/recording-writer/writer.h"

#define DATA_SIZE_AT 48 /* in the header */
#define BITS_AT 72
#define ATTR_ROOM (ATTR_WRITTEN + PERF_DATA_SECTION)
#define EVENT_UPDATE_NAME 2 /* PERF_EVENT_UPDATE__NAME of perf */
#define COMPRESSED_ZSTD 1
#define COMPRESSED_MMAP 524288 /* bytes that the largest compressed record may become: perf's buffer */

static size_t attrs_room(const perfd_recording_writer *w) {
        return w->n_events - w->n_late + PERFD_RECORDING_LATE_EVENTS;
}

static int end_of_buffer(perfd_recording_writer *w, Buffer *b, int code) {
        if (code == 0 && b->failed)
                code = writer_fail(w, -ENOMEM, "no memory");
        buffer_deinit(b);
        return code;
}

static void add_compressed(perfd_recording_writer *w) {
        Buffer *b = &w->features[PERF_DATA_FEATURE_COMPRESSED];

        if (!w->zstd)
                return;
        w->has[PERF_DATA_FEATURE_COMPRESSED] = true;
        buffer_put_u32(b, 1); /* version */
        buffer_put_u32(b, COMPRESSED_ZSTD);
        buffer_put_u32(b, (uint32_t)w->level);
        buffer_put_u32(b, 1); /* the ratio is known at the end, and nothing but a comment of perf says it */
        buffer_put_u32(b, COMPRESSED_MMAP);
}

/* ---- a file ------------------------------------------------------------------------------------------------------------------ */

static void put_attr(Buffer *b, const perfd_recorded_event *e, uint64_t *at) {
        const uint64_t size = e->n_ids * sizeof(uint64_t);

        attr_put(b, e);
        buffer_put_u64(b, *at);
        buffer_put_u64(b, size);
        *at += size;
}

static void put_file_header(Buffer *b, const perfd_recording_writer *w) {
        buffer_put_u64(b, PERF_DATA_MAGIC);
        buffer_put_u64(b, PERF_DATA_HEADER_SIZE);
        buffer_put_u64(b, ATTR_ROOM);
        buffer_put_u64(b, PERF_DATA_HEADER_SIZE);
        buffer_put_u64(b, w->n_events * ATTR_ROOM);
        buffer_put_u64(b, w->data);
        buffer_put_zeros(b, 8 + PERF_DATA_SECTION + PERF_DATA_FEATURES / 8);
}

/* Where the sections are so far: proto/recording-format.h has the form. */
static void put_unclosed(Buffer *b, const perfd_recording_writer *w) {
        uint64_t bits[PERF_DATA_FEATURES / 64] = { 0 };

        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                if (w->has[bit]) {
                        buffer_put_u64(b, w->places[bit].offset);
                        buffer_put_u64(b, w->places[bit].size);
                        bits[bit / 64] |= UINT64_C(1) << bit % 64;
                }
        buffer_put(b, bits, sizeof(bits));
        buffer_put_u64(b, PERF_DATA_UNCLOSED_MAGIC);
}

static int begin_file(perfd_recording_writer *w) {
        Buffer b = { .n = 0 };
        uint64_t at = PERF_DATA_HEADER_SIZE + attrs_room(w) * ATTR_ROOM, rows = 0;

        w->ids = (Place){ .offset = at };
        for (size_t i = 0; i < w->n_events; i++)
                w->ids.size += w->events[i].event.n_ids * sizeof(uint64_t);
        at += w->ids.size + PERFD_RECORDING_LATE_EVENTS * sizeof(uint64_t);
        w->has[PERF_DATA_FEATURE_EVENT_DESC] = true;
        attrs_put_desc(&w->features[PERF_DATA_FEATURE_EVENT_DESC], w);
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                if (w->has[bit]) {
                        w->places[bit] = (Place){ .offset = at, .size = w->features[bit].n };
                        at += (w->features[bit].n + 7) & ~(size_t)7;
                        rows += PERF_DATA_SECTION;
                }
        w->data = at + rows + PERF_DATA_UNCLOSED_SIZE;
        put_file_header(&b, w);
        at = w->ids.offset;
        for (size_t i = 0; i < w->n_events; i++)
                put_attr(&b, &w->events[i].event, &at);
        buffer_put_zeros(&b, PERFD_RECORDING_LATE_EVENTS * ATTR_ROOM);
        for (size_t i = 0; i < w->n_events; i++)
                buffer_put(&b, w->events[i].event.ids, w->events[i].event.n_ids * sizeof(uint64_t));
        buffer_put_zeros(&b, PERFD_RECORDING_LATE_EVENTS * sizeof(uint64_t));
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++) {
                buffer_put(&b, w->features[bit].bytes, w->features[bit].n);
                buffer_put_zeros(&b, -w->features[bit].n & 7);
        }
        put_unclosed(&b, w);
        return end_of_buffer(w, &b, b.failed ? 0 : writer_write(w, b.bytes, b.n));
}

/* The size of the attrs last: until then nobody looks at this one. */
static int add_event_to_file(perfd_recording_writer *w, size_t index) {
        Buffer b = { .n = 0 };
        const uint64_t id = w->ids.offset + w->ids.size, size = (index + 1) * ATTR_ROOM;
        uint64_t at = id;
        int code;

        put_attr(&b, &w->events[index].event, &at);
        code = b.failed ? 0 : writer_write_at(w, id, w->events[index].event.ids, sizeof(uint64_t));
        if (code == 0 && !b.failed)
                code = writer_write_at(w, PERF_DATA_HEADER_SIZE + index * ATTR_ROOM, b.bytes, b.n);
        if (code == 0 && !b.failed)
                code = writer_write_at(w, 32, &size, sizeof(size));
        w->ids.size += sizeof(uint64_t);
        return end_of_buffer(w, &b, code);
}

static void add_last_features(perfd_recording_writer *w) {
        Buffer *times = &w->features[PERF_DATA_FEATURE_SAMPLE_TIME], *desc = &w->features[PERF_DATA_FEATURE_EVENT_DESC];

        if (w->n_late > 0) {
                desc->n = 0;
                attrs_put_desc(desc, w);
        }
        if (!w->has_time)
                return;
        w->has[PERF_DATA_FEATURE_SAMPLE_TIME] = true;
        buffer_put_u64(times, w->first);
        buffer_put_u64(times, w->last);
}

static int end_file(perfd_recording_writer *w) {
        Buffer b = { .n = 0 }, last = { .n = 0 };
        const uint64_t end = w->at, size = end - w->data;
        uint64_t bits[PERF_DATA_FEATURES / 64] = { 0 }, at = end;
        int code;

        add_last_features(w);
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                at += w->has[bit] ? PERF_DATA_SECTION : 0;
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++) {
                if (!w->has[bit])
                        continue;
                if ((bit == PERF_DATA_FEATURE_EVENT_DESC && w->n_late > 0) || w->features[bit].n > w->places[bit].size) {
                        w->places[bit] = (Place){ .offset = at + last.n, .size = w->features[bit].n };
                        buffer_put(&last, w->features[bit].bytes, w->features[bit].n);
                }
                buffer_put_u64(&b, w->places[bit].offset);
                buffer_put_u64(&b, w->places[bit].size);
                bits[bit / 64] |= UINT64_C(1) << bit % 64;
        }
        buffer_put(&b, last.bytes, last.n);
        b.failed |= last.failed || w->features[PERF_DATA_FEATURE_EVENT_DESC].failed;
        buffer_deinit(&last);
        code = b.failed ? 0 : writer_write(w, b.bytes, b.n);
        if (code == 0 && !b.failed)
                code = writer_write_at(w, BITS_AT, bits, sizeof(bits));
        if (code == 0 && !b.failed)
                code = writer_write_at(w, DATA_SIZE_AT, &size, sizeof(size));
        return end_of_buffer(w, &b, code);
}

/* ---- a pipe ------------------------------------------------------------------------------------------------------------------ */

static int add_event_to_pipe(perfd_recording_writer *w, size_t index) {
        const perfd_recorded_event *e = &w->events[index].event;
        Buffer b = { .n = 0 };
        size_t length = strlen(e->name);
        int code;

        attr_put(&b, e);
        buffer_put(&b, e->ids, e->n_ids * sizeof(uint64_t));
        code = b.failed ? 0 : writer_write_record(w, PERF_DATA_HEADER_ATTR, 0, b.bytes, b.n);
        b.n = 0;
        buffer_put_u64(&b, EVENT_UPDATE_NAME);
        buffer_put_u64(&b, e->ids[0]);
        buffer_put(&b, e->name, length);
        buffer_put_zeros(&b, 8 - length % 8);
        if (code == 0 && !b.failed)
                code = writer_write_record(w, PERF_DATA_EVENT_UPDATE, 0, b.bytes, b.n);
        return end_of_buffer(w, &b, code);
}

static int add_tracing_to_pipe(perfd_recording_writer *w, const Buffer *tracing) {
        const uint32_t size = (uint32_t)((tracing->n + 7) & ~(size_t)7); /* with what fills it up */
        static const uint8_t zeros[8];
        int code = writer_write_record(w, PERF_DATA_HEADER_TRACING_DATA, 0, &size, sizeof(size));

        if (code == 0)
                code = writer_write(w, tracing->bytes, tracing->n);
        return code != 0 ? code : writer_write(w, zeros, -tracing->n & 7);
}

static int add_feature_to_pipe(perfd_recording_writer *w, unsigned bit) {
        const Buffer *f = &w->features[bit];
        Buffer b = { .n = 0 };
        int code;

        if (bit == PERF_DATA_FEATURE_TRACING_DATA)
                return add_tracing_to_pipe(w, f);
        if (f->n > UINT16_MAX - 4 * PERF_DATA_RECORD_HEADER)
                return 0; /* it has no room in a record, and perf leaves it out too */
        buffer_put_u64(&b, bit);
        buffer_put(&b, f->bytes, f->n);
        code = b.failed ? 0 : writer_write_record(w, PERF_DATA_HEADER_FEATURE, 0, b.bytes, b.n);
        return end_of_buffer(w, &b, code);
}

/* Rows that build-ids.c has kept. */
static int add_build_ids_to_pipe(perfd_recording_writer *w) {
        const Buffer *rows = &w->features[PERF_DATA_FEATURE_BUILD_ID];
        int code = 0;

        for (size_t at = 0; at < rows->n && code == 0;) {
                uint16_t misc, size;

                memcpy(&misc, rows->bytes + at + sizeof(uint32_t), sizeof(misc));
                memcpy(&size, rows->bytes + at + sizeof(uint32_t) + sizeof(misc), sizeof(size));
                code = writer_write_record(w, PERF_DATA_HEADER_BUILD_ID, misc, rows->bytes + at + PERF_DATA_RECORD_HEADER,
                                           size - (size_t)PERF_DATA_RECORD_HEADER);
                at += size;
        }
        return code;
}

static int begin_pipe(perfd_recording_writer *w) {
        const uint64_t header[2] = { PERF_DATA_MAGIC, PERF_DATA_PIPE_SIZE };
        int code = writer_write(w, header, sizeof(header));

        for (size_t i = 0; i < w->n_events && code == 0; i++)
                code = add_event_to_pipe(w, i);
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES && code == 0; bit++)
                if (w->has[bit] && bit != PERF_DATA_FEATURE_BUILD_ID)
                        code = add_feature_to_pipe(w, bit);
        return code == 0 ? add_build_ids_to_pipe(w) : code;
}

/* ---- either -------------------------------------------------------------------------------------------------------------------- */

int head_begin(perfd_recording_writer *w) {
        w->has_begun = true;
        add_compressed(w);
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                if (w->features[bit].failed)
                        return writer_fail(w, -ENOMEM, "no memory");
        return w->is_pipe ? begin_pipe(w) : begin_file(w);
}

int head_add_event(perfd_recording_writer *w, size_t index) {
        return w->is_pipe ? add_event_to_pipe(w, index) : add_event_to_file(w, index);
}

/* A file has it behind its records; until then, and if its writer is killed, what was there before. */
int head_renew_tracing(perfd_recording_writer *w, const void *bytes, size_t n) {
        Buffer *f = &w->features[PERF_DATA_FEATURE_TRACING_DATA];

        f->n = 0;
        buffer_put(f, bytes, n);
        if (f->failed)
                return writer_fail(w, -ENOMEM, "no memory");
        w->has[PERF_DATA_FEATURE_TRACING_DATA] = true;
        w->places[PERF_DATA_FEATURE_TRACING_DATA] = (Place){ .size = 0 }; /* nowhere yet */
        return w->is_pipe ? add_tracing_to_pipe(w, f) : 0;
}

int head_end(perfd_recording_writer *w) {
        return w->is_pipe ? 0 : end_file(w);
}
