/*
 * What an order asks of the records before it gives them: they are read, and wait in memory until they may be given, or in a file. Of a file most
 * stay where they are: it is read in a block of memory, piece by piece, and nothing but the time and the place of a record is noted. What still
 * waits when the block has to move on is copied; so does all that comes from a pipe, or is compressed.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/damage.h"
#include "client/recording/memory.h"
#include "client/recording/next.h"
#include "client/recording/order.h"
#include "client/recording/rounds.h"
#include "client/recording/sample.h"

#define COMPACT_FROM ((size_t)256 << 10) /* bytes */

void order_free(Order *o) {
        if (!o)
                return;
        (void)whole_free(o->whole);
        memory_deinit(&o->memory);
        runs_deinit(&o->runs);
        temporary_close(&o->rest_file);
        run_drop_buffer(&o->rest);
        free(o);
}

/* 1/2 is used by what waits in memory, 1/8 by the block that is read, 1/4 by buffers of runs where they are needed with these. */
static int hold_memory(perfd_recording *r, Order *o) {
        return memory_init(&o->memory, o->limit / 2) == 0 ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

static size_t runs_max(const Order *o) {
        return (o->has_rounds ? o->limit / 4 : o->limit / 8 * 7) / RUN_BUFFER;
}

/* What a second reading shows. */
static int check(perfd_recording *r, Order *o) {
        const int code = rounds_check(r, &o->is_sorted, &o->has_rounds);

        o->was_checked = true;
        return code < 0 ? recording_fail(r, code, "%s", strerror(-code)) : code;
}

static int begin_large(perfd_recording *r, Order *o) {
        const bool is_checked = !r->is_pipe && source_is_seekable(&r->source) && r->end - r->at > o->limit / 4;
        int code = hold_memory(r, o);

        if (code != 0 || !is_checked)
                return code;
        /* it would have to be checked anyway: so no more is held back from the beginning on than rounds ask for, which a cache holds */
        code = check(r, o);

        o->has_block = code == 0 && !o->is_sorted && r->source.fd >= 0;
        if (o->has_block && source_hold_room(&r->source, r->at, o->limit / 8) != 0)
                return recording_fail(r, -ENOMEM, "no memory");
        return code;
}

int order_begin(perfd_recording *r) {
        Order *o = calloc(1, sizeof(*o));
        const bool can_read_twice = source_is_seekable(&r->source);

        if (!o)
                return recording_fail(r, -ENOMEM, "no memory");
        *o = (Order){ .limit = r->order_memory > 0 ? r->order_memory : PERFD_RECORDING_ORDER_MEMORY_DEFAULT, .runs = RUNS_NULL,
                      .rest_file = TEMPORARY_NULL, .was_checked = !can_read_twice, .has_rounds = !can_read_twice };
        r->order = o;
        if (whole_new(r, o->limit, &o->whole) != 0)
                return -ENOMEM;
        return o->whole ? 0 : begin_large(r, o);
}

/* ---- room ---------------------------------------------------------------------------------------------------------------------- */

/* All that waits in memory, to the file. */
static int spill(perfd_recording *r, Order *o) {
        const uint64_t from = o->runs.file.n;
        Memory *m = &o->memory;
        const Entry *e;
        int code = 0;

        while (code == 0 && (e = memory_first_sorted(m))) {
                const Kept kept = memory_get(r, m, e);

                code = temporary_add(r, &o->runs.file, &kept.head, kept.bytes);
                memory_give_sorted(m);
        }
        if (code == 0 && o->runs.file.fd >= 0)
                code = runs_add(r, &o->runs, from);
        while (code == 0 && (e = memory_first_rest(m))) {
                const Kept kept = memory_get(r, m, e);

                code = temporary_add(r, &o->rest_file, &kept.head, kept.bytes);
                memory_give_rest(m);
        }
        if (code == 0 && o->rest_file.fd >= 0)
                code = temporary_flush(r, &o->rest_file);
        o->rest.end = o->rest_file.n;
        memory_clear(m);
        if (code != 0 || o->runs.n < runs_max(o))
                return code;
        memory_deinit(m); /* buffers of runs take its room */
        code = runs_merge(r, &o->runs);
        return code == 0 ? hold_memory(r, o) : code;
}

static int make_room(perfd_recording *r, Order *o) {
        if (memory_drop_given(&o->memory) && memory_has_room(&o->memory))
                return 0;
        if (o->memory.n_given >= o->memory.size / 4) {
                memory_compact(&o->memory);
                return 0;
        }
        runs_drop_buffers(&o->runs);
        return spill(r, o);
}

/* Nothing of the block is needed any more. */
static int clear_block(perfd_recording *r, Order *o) {
        if (memory_copy_places(r, &o->memory))
                return 0;
        runs_drop_buffers(&o->runs);
        return spill(r, o);
}

/* What follows is not in it: it is compressed, or cannot be read. */
static int leave_block(perfd_recording *r, Order *o) {
        o->has_block = false; /* its memory stays, in which that record may be */
        return clear_block(r, o);
}

/* So that the next record is in it, if it can be. */
static int move_block(perfd_recording *r, Order *o) {
        const uint64_t left = r->end - r->at;
        const size_t n = left < RECORD_MAX ? (size_t)left : RECORD_MAX;
        int code = source_hold_until(&r->source, r->at, n);

        if (code == 1) {
                code = clear_block(r, o);
                if (code != 0)
                        return code;
                source_hold_from(&r->source, r->at);
                code = source_hold_until(&r->source, r->at, n);
        }
        return code < 0 ? leave_block(r, o) : 0; /* whoever reads the record finds what is wrong */
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

static int say_late(perfd_recording *r, const perfd_recorded *record, uint64_t time) {
        const char *name = perfd_recorded_name(record->type);

        return recording_damage(r, record->offset, "a record %s of the time %llu ns: a record FINISHED_ROUND before it promised none before "
                                "%llu ns; it is given now", name ? name : "of no known type", (unsigned long long)time,
                                (unsigned long long)r->order->given_until);
}

/* A record that comes, or none of which more is asked than its time. */
static int note_time(perfd_recording *r, Order *o, const perfd_recorded *record, uint64_t time, bool is_sorted) {
        const int code = is_sorted && time < o->given_until ? say_late(r, record, time) : 0;

        if (time > o->latest)
                o->latest = time;
        if (record->type == PERF_DATA_FINISHED_ROUND) {
                o->safe = o->latest_before;
                o->latest_before = o->latest;
        }
        return code;
}

/* A compressed one may be larger than its header can say, and what follows it is somewhere else anyway. */
static bool is_in_block(const perfd_recording *r, const perfd_recorded *record) {
        return source_is_held(&r->source, record->bytes) && record->type != PERF_DATA_COMPRESSED && record->type != PERF_DATA_COMPRESSED2;
}

static int take(perfd_recording *r, Order *o, const perfd_recorded *record) {
        const uint64_t time = recording_time(r, record);
        const bool is_sorted = time > 0 && (r->order_kind == PERFD_RECORDING_ORDER_TIME || record_is_state(record->type));
        int code = o->has_block && !is_in_block(r, record) ? leave_block(r, o) : 0;
        Stored s = { .time = time > 0 ? time : STORED_NO_TIME, .offset = record->offset, .type = record->type, .misc = record->misc,
                     .is_compressed = record->is_compressed, .is_sorted = is_sorted, .size = (uint32_t)record->size };

        if (code != 0)
                return code;
        if (!o->has_block && !memory_has_room(&o->memory) && (code = make_room(r, o)) != 0)
                return code;
        s.sequence = o->sequence = o->has_block ? record->offset : o->sequence + 1;
        if (o->has_block)
                memory_note(&o->memory, s.time, record->offset | IN_PLACE, is_sorted);
        else
                memory_add(&o->memory, &s, record->bytes);
        return note_time(r, o, record, time, is_sorted);
}

/* Samples that are in the block, one behind the other. False: the next record is none of them. */
static bool take_samples(perfd_recording *r, Order *o, int *ret_code) {
        const bool is_sorted = r->order_kind == PERFD_RECORDING_ORDER_TIME;
        const size_t n = o->has_block ? memory_skim(r, &o->memory, is_sorted) : 0;
        const Entry *end = is_sorted ? o->memory.entries + o->memory.n_sorted : o->memory.rest + o->memory.n_rest;

        *ret_code = 0;
        for (const Entry *e = end - n; e < end && *ret_code == 0; e++) {
                const perfd_recorded record = { .type = PERF_RECORD_SAMPLE, .offset = e->at & ~IN_PLACE };

                *ret_code = note_time(r, o, &record, e->time, is_sorted);
        }
        return n > 0;
}

/* No more is read. Once there are runs all of it becomes one, so that only they take memory. */
static int end(perfd_recording *r, Order *o) {
        int code = 0;

        o->has_ended = true;
        if (o->runs.n > 0) {
                code = spill(r, o);
                memory_deinit(&o->memory);
        }
        return code;
}

int order_fill(perfd_recording *r, Order *o) {
        for (;;) {
                const perfd_recorded *record;
                int code = 0;

                if (!memory_has_room(&o->memory)) {
                        if (!o->was_checked)
                                return check(r, o);
                        code = make_room(r, o);
                } else if (!o->has_block && o->memory.n_given >= COMPACT_FROM && o->memory.n_given >= o->memory.n / 2)
                        memory_compact(&o->memory); /* where it is still in a cache; never more moves than was given */
                if (code == 0 && o->has_block)
                        code = move_block(r, o);
                if (code == 0 && take_samples(r, o, &code)) {
                        if (code != 0)
                                return code;
                        continue;
                }
                if (code == 0)
                        code = recording_read(r, &record);
                if (code == PERFD_E_ENDED)
                        return end(r, o);
                if (code == 0)
                        code = take(r, o, record);
                if (code != 0 || (record->type == PERF_DATA_FINISHED_ROUND && o->has_rounds))
                        return code;
        }
}
