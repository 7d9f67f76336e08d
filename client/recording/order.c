/*
 * Records in another order than that of the recording. There are two queues: one by time, of what is sorted, and one of the rest, in the
 * order of the recording; each begins in a temporary file and ends in memory. Which comes first of the two heads is the same question in
 * both orders; what differs is who goes into which queue: by time all that have one, causally those that say what processes and memory are.
 * Whether the first may be given yet is a question of its own: until a round, or the end, has shown that nothing older follows, it waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/runs.h"
#include "client/recording/whole.h"

#define COMPACT_FROM ((size_t)256 << 10) /* bytes */

typedef enum Queue {
        QUEUE_NONE,
        QUEUE_MEMORY_SORTED,
        QUEUE_MEMORY_REST,
        QUEUE_RUNS,
        QUEUE_FILE_REST,
} Queue;

struct Order {
        Whole *whole;            /* NULL: it does not fit in memory, and there is what follows */
        size_t limit;            /* bytes */
        Memory memory;
        Runs runs;
        Temporary rest_file;
        Run rest;                /* of rest_file */
        uint64_t n_read;         /* records */
        uint64_t latest, latest_before, safe; /* ns: of all that were read, at the round before; and none that is older follows */
        uint64_t given_until;    /* ns: the latest time that was given */
        bool was_checked;        /* whether rounds keep what they promise */
        bool has_rounds;         /* and they do */
        bool is_sorted;          /* the recording is in the order of time as it is */
        bool has_ended;
        Queue given;             /* from where the last record was */
        int failure;             /* what is returned from now on */
};

/* A head, and where it is. */
typedef struct Head {
        const Stored *stored;    /* NULL: there is none, or it is not loaded yet */
        Queue queue;
        uint64_t time, sequence;
} Head;

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

/* All but 1/8 is used: 5/8 by records in memory, 1/4 by buffers of runs where both are needed at a time. */
static int hold_memory(perfd_recording *r, Order *o) {
        return memory_init(&o->memory, o->limit / 8 * 5) == 0 ? 0 : recording_fail(r, -ENOMEM, "no memory");
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

static int order_new(perfd_recording *r) {
        Order *o = calloc(1, sizeof(*o));
        const bool can_read_twice = source_is_seekable(&r->source);

        if (!o)
                return recording_fail(r, -ENOMEM, "no memory");
        *o = (Order){ .limit = r->order_memory > 0 ? r->order_memory : PERFD_RECORDING_ORDER_MEMORY_DEFAULT, .runs = RUNS_NULL,
                      .rest_file = TEMPORARY_NULL, .was_checked = !can_read_twice, .has_rounds = !can_read_twice };
        r->order = o;
        if (whole_new(r, o->limit, &o->whole) != 0)
                return -ENOMEM;
        if (o->whole)
                return 0;
        if (hold_memory(r, o) != 0)
                return -ENOMEM;
        /* it would have to be checked anyway: so no more is held back from the beginning on than rounds ask for, which a cache holds */
        return can_read_twice && !r->is_pipe && r->end - r->at > o->memory.size ? check(r, o) : 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

static int say_late(perfd_recording *r, const perfd_recorded *record, uint64_t time) {
        const char *name = perfd_recorded_name(record->type);

        return recording_damage(r, record->offset, "a record %s of the time %llu ns: a record FINISHED_ROUND before it promised none before "
                                "%llu ns; it is given now", name ? name : "of no known type", (unsigned long long)time,
                                (unsigned long long)r->order->given_until);
}

static int take(perfd_recording *r, Order *o, const perfd_recorded *record) {
        const uint64_t time = recording_time(r, record);
        Stored s = { .time = time > 0 ? time : STORED_NO_TIME, .offset = record->offset, .sequence = o->n_read++, .type = record->type,
                     .misc = record->misc, .is_compressed = record->is_compressed, .size = (uint32_t)record->size };
        int code = 0;

        s.is_sorted = time > 0 && (r->order_kind == PERFD_RECORDING_ORDER_TIME || record_is_state(record->type));
        if (s.is_sorted && time < o->given_until)
                code = say_late(r, record, time);
        if (time > o->latest)
                o->latest = time;
        if (record->type == PERF_DATA_FINISHED_ROUND) {
                o->safe = o->latest_before;
                o->latest_before = o->latest;
        }
        memory_add(&o->memory, &s, record->bytes);
        return code;
}

/* All that is in memory, to the file. */
static int spill(perfd_recording *r, Order *o) {
        const uint64_t from = o->runs.file.n;
        const Stored *s;
        int code = 0;

        while (code == 0 && (s = memory_first_sorted(&o->memory))) {
                code = temporary_add(r, &o->runs.file, s);
                memory_give_sorted(&o->memory);
        }
        if (code == 0 && o->runs.file.fd >= 0)
                code = runs_add(r, &o->runs, from);
        while (code == 0 && (s = memory_first_rest(&o->memory))) {
                code = temporary_add(r, &o->rest_file, s);
                memory_give_rest(&o->memory);
        }
        if (code == 0 && o->rest_file.fd >= 0)
                code = temporary_flush(r, &o->rest_file);
        o->rest.end = o->rest_file.n;
        memory_clear(&o->memory);
        if (code != 0 || o->runs.n < runs_max(o))
                return code;
        memory_deinit(&o->memory); /* buffers of runs take its room */
        code = runs_merge(r, &o->runs);
        return code == 0 ? hold_memory(r, o) : code;
}

static int make_room(perfd_recording *r, Order *o) {
        if (o->memory.n_given >= o->memory.size / 4) {
                memory_compact(&o->memory);
                return 0;
        }
        runs_drop_buffers(&o->runs);
        return spill(r, o);
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

/* Until something may be given that could not before, or the end. 0; -ENOMEM, -errno */
static int fill(perfd_recording *r, Order *o) {
        for (;;) {
                const perfd_recorded *record;
                int code = 0;

                if (!memory_has_room(&o->memory)) {
                        if (!o->was_checked)
                                return check(r, o);
                        code = make_room(r, o);
                } else if (o->memory.n_given >= COMPACT_FROM && o->memory.n_given >= o->memory.n / 2)
                        memory_compact(&o->memory); /* where it is still in a cache; never more moves than was given */
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

/* ---- giving -------------------------------------------------------------------------------------------------------------------- */

static Head head_of(const Stored *s, Queue queue) {
        return s ? (Head){ .stored = s, .queue = queue, .time = s->time, .sequence = s->sequence } : (Head){ .queue = QUEUE_NONE };
}

static Head sorted_head(Order *o) {
        const Run *run = o->runs.n > 0 ? &o->runs.list[0] : NULL;
        const Head head = head_of(memory_first_sorted(&o->memory), QUEUE_MEMORY_SORTED);

        if (!run || (head.stored && (head.time < run->time || (head.time == run->time && head.sequence < run->sequence))))
                return head;
        return (Head){ .queue = QUEUE_RUNS, .time = run->time, .sequence = run->sequence };
}

static int rest_head(perfd_recording *r, Order *o, Head *ret) {
        const Stored *s = memory_first_rest(&o->memory);
        int code = 0;

        if (o->rest.at == o->rest.end)
                *ret = head_of(s, QUEUE_MEMORY_REST);
        else if ((code = run_first(r, &o->rest_file, &o->rest, &s)) == 0)
                *ret = head_of(s, QUEUE_FILE_REST);
        return code;
}

static bool is_sorted_first(const Head *sorted, const Head *rest) {
        if (sorted->queue == QUEUE_NONE || rest->queue == QUEUE_NONE)
                return rest->queue == QUEUE_NONE;
        return sorted->sequence < rest->sequence || (rest->time != STORED_NO_TIME && sorted->time <= rest->time);
}

/* Nothing that belongs before it is still to be read. */
static bool may_give(const Order *o, uint64_t time) {
        return time == STORED_NO_TIME || o->has_ended || o->is_sorted || (o->has_rounds && time < o->safe);
}

/* Behind the record that was given last. */
static int step(perfd_recording *r, Order *o) {
        const Queue given = o->given;

        o->given = QUEUE_NONE;
        switch (given) {
        case QUEUE_MEMORY_SORTED:
                memory_give_sorted(&o->memory);
                break;
        case QUEUE_MEMORY_REST:
                memory_give_rest(&o->memory);
                break;
        case QUEUE_RUNS:
                return runs_step(r, &o->runs);
        case QUEUE_FILE_REST:
                return run_step(r, &o->rest_file, &o->rest);
        case QUEUE_NONE:
                break;
        }
        return 0;
}

static void show(perfd_recording *r, Order *o, const Head *head, const perfd_recorded **ret) {
        const Stored *s = head->stored;

        o->given = head->queue;
        if (s->time != STORED_NO_TIME && s->time > o->given_until)
                o->given_until = s->time;
        r->shown = (perfd_recorded){ .type = s->type, .misc = s->misc, .is_compressed = s->is_compressed, .offset = s->offset, .bytes = s + 1,
                                     .size = s->size };
        *ret = &r->shown;
}

/* PERFD_E_NEEDED: nothing may be given yet. */
static int give(perfd_recording *r, Order *o, const perfd_recorded **ret) {
        Head head = { .queue = QUEUE_NONE };
        const Head sorted = sorted_head(o);
        int code = rest_head(r, o, &head);

        if (code != 0)
                return code;
        if (is_sorted_first(&sorted, &head))
                head = sorted;
        if (head.queue == QUEUE_NONE)
                return o->has_ended ? PERFD_E_ENDED : PERFD_E_NEEDED;
        if (!may_give(o, head.time))
                return PERFD_E_NEEDED;
        if (head.queue == QUEUE_RUNS)
                code = run_first(r, &o->runs.file, &o->runs.list[0], &head.stored);
        if (code == 0)
                show(r, o, &head, ret);
        return code;
}

int order_next(perfd_recording *r, const perfd_recorded **ret) {
        int code = r->order ? r->order->failure : order_new(r);
        Order *o = r->order;

        if (code == 0 && o->whole)
                return o->failure = whole_next(r, o->whole, ret);
        if (code == 0)
                code = step(r, o);
        while (code == 0 && (code = give(r, o, ret)) == PERFD_E_NEEDED) {
                if (o->is_sorted)
                        return recording_read(r, ret); /* nothing is held any more */
                code = fill(r, o);
        }
        if (code < 0 && o)
                o->failure = code;
        return code;
}

/* ---- what is chosen -------------------------------------------------------------------------------------------------------------- */

int perfd_recording_next(perfd_recording *r, const perfd_recorded **ret) {
        r->has_begun = true;
        return r->order_kind == PERFD_RECORDING_ORDER_FILE ? recording_read(r, ret) : order_next(r, ret);
}

static int begun(perfd_recording *r) {
        return recording_fail(r, PERFD_E_STATE, "the order is chosen before the first record is asked for");
}

int perfd_recording_set_order(perfd_recording *r, perfd_recording_order order) {
        if (r->has_begun)
                return begun(r);
        if (order > PERFD_RECORDING_ORDER_TIME)
                return recording_fail(r, PERFD_E_INVALID, "no such order: %u", (unsigned)order);
        r->order_kind = order;
        return 0;
}

int perfd_recording_set_order_memory(perfd_recording *r, size_t bytes) {
        if (r->has_begun)
                return begun(r);
        if (bytes < PERFD_RECORDING_ORDER_MEMORY_MIN)
                return recording_fail(r, PERFD_E_INVALID, "memory for the order: found %zu bytes, expected at least %zu", bytes,
                                      PERFD_RECORDING_ORDER_MEMORY_MIN);
        r->order_memory = bytes;
        return 0;
}

int perfd_recording_set_order_directory(perfd_recording *r, const char *path) {
        char *copy = NULL;

        if (r->has_begun)
                return begun(r);
        if (path) {
                copy = strdup(path);
                if (!copy)
                        return recording_fail(r, -ENOMEM, "no memory");
        }
        free(r->order_directory);
        r->order_directory = copy;
        return 0;
}
