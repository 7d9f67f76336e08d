/*
 * Records in another order than that of the recording. There are two queues: one by time, of what is sorted, and one of the rest, in the
 * order of the recording; each begins in a temporary file and ends in memory. Which comes first of the two heads is the same question in
 * both orders; what differs is who goes into which queue: by time all that have one, causally those that say what processes and memory are.
 * Whether the first may be given yet is a question of its own: until a round, or the end, has shown that nothing older follows, it waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/damage.h"
#include "client/recording/next.h"
#include "client/recording/order.h"

#define FETCHED_AHEAD 6 /* records: of what is given in between, longer than memory takes */

/* A head, and where it is. */
typedef struct Head {
        Queue queue;             /* QUEUE_NONE: there is none */
        uint64_t time, sequence;
} Head;

/* ---- giving -------------------------------------------------------------------------------------------------------------------- */

static Head head_of(const Memory *m, const Entry *e, Queue queue) {
        return e ? (Head){ .queue = queue, .time = e->time, .sequence = memory_sequence(m, e) } : (Head){ .queue = QUEUE_NONE };
}

static Head sorted_head(Order *o) {
        const Run *run = o->runs.n > 0 ? &o->runs.list[0] : NULL;
        const Head head = head_of(&o->memory, memory_first_sorted(&o->memory), QUEUE_MEMORY_SORTED);

        if (!run || (head.queue != QUEUE_NONE && (head.time < run->time || (head.time == run->time && head.sequence < run->sequence))))
                return head;
        return (Head){ .queue = QUEUE_RUNS, .time = run->time, .sequence = run->sequence };
}

static int rest_head(perfd_recording *r, Order *o, Head *ret) {
        const Stored *s;
        int code = 0;

        if (o->rest.at == o->rest.end)
                *ret = head_of(&o->memory, memory_first_rest(&o->memory), QUEUE_MEMORY_REST);
        else if ((code = run_first(r, &o->rest_file, &o->rest, &s)) == 0)
                *ret = (Head){ .queue = QUEUE_FILE_REST, .time = s->time, .sequence = s->sequence };
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

static int show(perfd_recording *r, Order *o, const Head *head) {
        const Stored *s;
        int code = 0;

        o->given = head->queue;
        if (head->time != STORED_NO_TIME && head->time > o->given_until)
                o->given_until = head->time;
        if (head->queue == QUEUE_MEMORY_SORTED)
                memory_show(r, &o->memory, memory_first_sorted(&o->memory));
        else if (head->queue == QUEUE_MEMORY_REST)
                memory_show(r, &o->memory, memory_first_rest(&o->memory));
        else if (head->queue == QUEUE_FILE_REST && (code = run_first(r, &o->rest_file, &o->rest, &s)) == 0)
                r->shown = stored_shown(s);
        else if (head->queue == QUEUE_RUNS && (code = run_first(r, &o->runs.file, &o->runs.list[0], &s)) == 0)
                r->shown = stored_shown(s);
        return code;
}

/* What most records are: of the block, with nothing in a file. False: it has to be asked in all ways. */
static bool give_quickly(perfd_recording *r, Order *o) {
        Memory *m = &o->memory;
        const Entry *sorted = m->sorted_at < m->n_sorted ? &m->entries[m->sorted_at] : NULL, *rest = memory_first_rest(m), *e;
        bool is_sorted;

        if (!o->has_block || !m->is_in_order || o->runs.n > 0 || o->rest.at < o->rest.end || (!sorted && !rest))
                return false;
        is_sorted = !rest || (sorted && (memory_sequence(m, sorted) < memory_sequence(m, rest) ||
                                         (rest->time != STORED_NO_TIME && sorted->time <= rest->time)));
        e = is_sorted ? sorted : rest;
        if ((e->at & IN_PLACE) == 0 || !may_give(o, e->time))
                return false;
        if (e->time != STORED_NO_TIME && e->time > o->given_until)
                o->given_until = e->time;
        m->sorted_at += is_sorted;
        m->rest_at += !is_sorted;
        memory_show(r, m, e);
        memory_fetch(r, m, m->sorted_at + FETCHED_AHEAD);
        return true;
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
        *ret = &r->shown;
        return show(r, o, &head);
}

int order_next(perfd_recording *r, const perfd_recorded **ret) {
        int code = r->order ? r->order->failure : order_begin(r);
        Order *o = r->order;

        if (code == 0 && o->whole)
                return o->failure = whole_next(r, o->whole, ret);
        if (code == 0)
                code = step(r, o);
        if (code == 0 && give_quickly(r, o)) {
                *ret = &r->shown;
                return 0;
        }
        while (code == 0 && (code = give(r, o, ret)) == PERFD_E_NEEDED) {
                if (o->is_sorted)
                        return recording_read(r, ret); /* nothing is held any more */
                code = order_fill(r, o);
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
