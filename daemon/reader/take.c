/*
 * Takes any record: samples that are not taken in place (reader/drain.c), and side records. If one does not fit, the caller
 * removes what it has left in the batch.
 */
#include "daemon/reader/cycle.h"

#include <string.h>

#include "daemon/decode/fields.h"
#include "daemon/decode/record.h"
#include "daemon/model/zero-tid.h"
#include "daemon/reader/route.h"

#define NO_ID UINT64_MAX /* the kernel's ids begin with 1 */

static int reader_decode(const SnapshotStream *stream, const uint8_t *bytes, size_t length, Record *ret) {
        const Plan *plan = stream->of->event->plan;
        int n = record_decode(stream->layout, bytes, length, ret);

        if (n != 0)
                return n;
        if (stream->period > 1 && ret->period == 0) {
                ret->period = stream->period; /* stored now, because it may have changed when the item is read */
                ret->layout = RECORD_LAYOUT_ANY;
        }
        return plan ? plan_check(plan, ret->raw, ret->raw_size) : 0;
}

static int reader_take_sample(Reader *r, const SnapshotStream *stream, const uint8_t *bytes, size_t length) {
        Record record;
        nsec_t time;
        int n;

        if (stream->is_standby) {
                counter_add(&stream->counters->duplicates, 1);
                if (stream->is_sampling)
                        counter_add(&stream->counters->duplicates_sampled, 1);
                return 0;
        }
        if (reader_decode(stream, bytes, length, &record) != 0) {
                counter_add(&stream->counters->lost[LOSS_UNDECODABLE], 1);
                loss_bell_note(r->losses);
                return 0;
        }
        record.cpu = r->cpu;
        time = record.time;
        if (time > r->began || (stream->is_shared && time < r->given))
                record.time = reader_mend_time(r, stream->is_shared, time);
        n = reader_route(r, stream, &record);
        if (n != 0 || !stream->is_shared)
                return n;
        r->shared_time = record.time;
        if (record.time != time)
                counter_add(&r->counters.foreign_times, 1);
        return 0;
}

/* The subscriptions that want a record of this type, whichever event wrote it. */
static const SubscriptionSet *snapshot_record_wants(const Snapshot *s, uint32_t type) {
        unsigned kind = record_kind_of(type);

        return kind < _RECORD_KIND_MAX ? &s->record_wants[kind] : &s->all_want;
}

/* stream: NULL for a record of the carrier. */
static int reader_take_side(Reader *r, const SnapshotStream *stream, const uint8_t *bytes, size_t length) {
        const SnapshotEvent *e = stream ? stream->of : NULL;
        SubscriptionSet set = { .groups = 0 };
        Record record;
        size_t room, item_length = 0;
        uint8_t *to;
        int n;

        if (record_decode(stream ? stream->layout : &r->side_layout, bytes, length, &record) != 0) {
                counter_add(&r->counters.undecodable, 1);
                return 0;
        }
        record.cpu = r->cpu;
        if (r->has_no_pids && record.tid == 0)
                record.zero_tid = (uint8_t)zero_tid_of_side(&record);
        if (record.type == PERF_RECORD_LOST)
                loss_bell_note(r->losses);
        if (record.time > r->began)
                record.time = reader_mend_time(r, false, record.time);
        reader_learn_comm(r, &record);
        n = !e && r->snapshot->notes ? reader_note(r, &record) : 0;
        if (n != 0)
                return n;
        if (e)
                snapshot_event_wants(e, &set);
        if (!e || record_kind_of(record.type) < _RECORD_KIND_MAX)
                subscription_set_add_set(&set, snapshot_record_wants(r->snapshot, record.type));
        if (set.groups) {
                if (!batch_has_room_for(r->batch, subscription_set_count_groups(&set)))
                        return READER_E_NO_ROOM;
                to = batch_room(r->batch, &room);
                if (side_item_encode(&record, e ? e->event->id : 0, to, room, &item_length) != 0)
                        return READER_E_NO_ROOM;
                batch_append_set(r->batch, record.time, &set, e ? e->event->id : 0, record.tid, item_length);
        }
        counter_add(&r->counters.side_records, 1);
        return 0;
}

/* A sample of the internal stream of cgroup migrations. */
static int reader_take_move(Reader *r, const uint8_t *bytes, size_t length) {
        Record record;
        int n;

        if (record_decode(&r->moves.layout, bytes, length, &record) != 0)
                n = READER_E_UNDECODABLE;
        else
                n = r->snapshot->notes ? reader_note_move(r, &record) : 0;
        if (n == READER_E_NO_ROOM)
                return n;
        counter_add(n == 0 ? &r->counters.side_records : &r->counters.undecodable, 1);
        return 0;
}

/*
 * True if the record ends where this layout ends; if variable parts other than a callchain follow the fixed ones, decoding
 * decides. So a number at the place of another layout's id is not taken for an id.
 */
static bool fits_exactly(const SampleLayout *l, const uint8_t *bytes, size_t length) {
        uint64_t n;

        if (l->parts || l->sample_type & PERF_SAMPLE_RAW)
                return length >= l->head_size;
        if (!(l->sample_type & PERF_SAMPLE_CALLCHAIN))
                return length == l->head_size;
        return record_peek_at(bytes, length, l->head_size, &n) == 0 && length % sizeof(n) == 0 &&
               n == (length - l->head_size) / sizeof(n) - 1;
}

/* The stream of the id at this offset, if its layout has the id there. */
static const SnapshotStream *reader_find_at(const Reader *r, const uint8_t *bytes, size_t length, uint8_t at) {
        const SnapshotStream *stream;
        uint64_t id;

        if (record_peek_at(bytes, length, at, &id) != 0)
                return NULL;
        stream = snapshot_find(&r->snapshot->cpus[r->slot], id);
        return stream && stream->layout->own_id == at ? stream : NULL;
}

/*
 * Software events of one kind that occur at the same moment have one id in their samples, that of `named` or of another tool's
 * event, and each its own id where its layout has PERF_SAMPLE_READ (kernel/event/attr.c). Its offset usually is that of `named`.
 * Each offset at which a layout can have it is tried.
 */
static const SnapshotStream *reader_find_shared(const Reader *r, const uint8_t *bytes, size_t length) {
        for (uint8_t at = sizeof(struct perf_event_header); at < UINT8_MAX - sizeof(uint64_t); at += sizeof(uint64_t)) {
                const SnapshotStream *stream = reader_find_at(r, bytes, length, at);

                if (stream && fits_exactly(stream->layout, bytes, length))
                        return stream;
        }
        return NULL;
}

const SnapshotStream *reader_find_sample(const Reader *r, uint64_t id, const uint8_t *bytes, size_t length) {
        const SnapshotStream *named = snapshot_find(&r->snapshot->cpus[r->slot], id), *own;

        if (named && !named->layout->own_id)
                return named;
        if (!named && (id == r->carrier_id || id == r->retiring_id || id == r->moves.id))
                return NULL;
        own = named ? reader_find_at(r, bytes, length, named->layout->own_id) : NULL;
        return own ? own : reader_find_shared(r, bytes, length);
}

/*
 * The id of a record of which only the end of the body is known, and its stream or NULL. The id is the last word of a trailer
 * (sample_id_all of perf_event_open(2)), if the layout of the stream with this id has such a trailer. NO_ID: none.
 */
static uint64_t reader_find_id(const Reader *r, const uint8_t *bytes, size_t length, size_t body_end, const SnapshotStream **ret) {
        for (size_t end = body_end + r->side_layout.trailer_size; end <= length; end += sizeof(uint64_t)) {
                const SampleLayout *layout;
                uint64_t id;

                memcpy(&id, bytes + end - sizeof(id), sizeof(id));
                *ret = snapshot_find(&r->snapshot->cpus[r->slot], id);
                layout = *ret ? (*ret)->layout : id > 0 && (id == r->carrier_id || id == r->retiring_id) ? &r->side_layout : NULL;
                if (layout && layout->trailer_size == end - body_end)
                        return id;
        }
        *ret = NULL;
        return NO_ID;
}

/* A sample without a stream, or another record. */
static int reader_take_other(Reader *r, const SnapshotStream *stream, const struct perf_event_header *header, uint64_t id,
                             const uint8_t *bytes) {
        size_t body_end = header->type == PERF_RECORD_SAMPLE ? 0 : record_body_end(bytes, header->size);

        if (body_end > 0)
                id = reader_find_id(r, bytes, header->size, body_end, &stream);
        if (!stream && id != r->carrier_id && id != r->retiring_id) {
                if (id == r->moves.id && header->type == PERF_RECORD_SAMPLE)
                        return reader_take_move(r, bytes, header->size);
                counter_add(&r->counters.unknown_id, 1);
                return 0;
        }
        if (header->type != PERF_RECORD_SAMPLE)
                return reader_take_side(r, stream, bytes, header->size);
        counter_add(&r->counters.undecodable, 1); /* a carrier is a PERF_COUNT_SW_DUMMY event, which has no samples */
        return 0;
}

int reader_take(Reader *r, const uint8_t *bytes, size_t length, bool *ret_is_sample) {
        const SnapshotStream *stream;
        struct perf_event_header header;
        uint64_t id;
        int n;

        memcpy(&header, bytes, sizeof(header));
        *ret_is_sample = false;
        if (record_peek_id(bytes, length, &id) != 0) {
                counter_add(&r->counters.undecodable, 1);
                return 0;
        }
        stream = header.type == PERF_RECORD_SAMPLE ? reader_find_sample(r, id, bytes, length)
                                                   : snapshot_find(&r->snapshot->cpus[r->slot], id);
        if (!stream || header.type != PERF_RECORD_SAMPLE)
                return reader_take_other(r, stream, &header, id, bytes);
        *ret_is_sample = true;
        n = reader_take_sample(r, stream, bytes, length);
        if (n == 0 && stream->is_sampling)
                counter_add(&stream->counters->sampled, 1);
        return n;
}

void reader_lose(Reader *r, const uint8_t *bytes, size_t length, bool is_sample) {
        const SnapshotStream *stream;
        uint64_t id = 0;

        (void)record_peek_id(bytes, length, &id); /* reader_take() has read it before */
        stream = is_sample ? reader_find_sample(r, id, bytes, length) : NULL;
        if (!stream) {
                counter_add(&r->counters.undecodable, 1);
                return;
        }
        counter_add(&stream->counters->lost[LOSS_BATCH_POOL], 1);
        loss_bell_note(r->losses);
        if (stream->is_sampling)
                counter_add(&stream->counters->sampled, 1);
}
