/* For tests of fleets: one with callbacks that count, and its sums. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/fleet-messages.h"

typedef struct Rig {
        perfd_fleet *fleet;
        uint64_t n_items, n_gaps, n_begun, n_ended, n_refused, n_missing, n_asked, last_time;
        char refused[160]; /* why, of the last one */
} Rig;

static inline void on_begin(void *userdata, const perfd_fleet_stream *s) {
        ((Rig *)userdata)->n_begun++;
}

static inline void on_item(void *userdata, const perfd_fleet_stream *s, const perfd_item *item) {
        Rig *r = userdata;
        perfd_value v;

        r->n_items++;
        r->last_time = perfd_item_time(item);
        assert_true(perfd_item_find(item, "state", &v)); /* it is described */
}

static inline void on_batch(void *userdata, const perfd_fleet_stream *s, const perfd_batch *batch) {
        Rig *r = userdata;
        const perfd_column *column;

        r->n_items += batch->n;
        assert_int_equal(perfd_batch_column(batch, PLAYED_EVENT, "state", &column), 0);
        assert_int_equal(column->n, batch->n);
}

static inline void on_gap(void *userdata, const perfd_fleet_stream *s, const perfd_gap *gap) {
        Rig *r = userdata;

        r->n_gaps++;
        if (strcmp(gap->reason, "gone") == 0)
                r->n_missing += gap->last_sequence - gap->first_sequence + 1;
}

static inline void on_end(void *userdata, const perfd_fleet_stream *s, const perfd_end *end) {
        Rig *r = userdata;
        Played p = played_items("a", 1, 1, 0);
        const perfd_fleet_message m = message_of(&p);

        r->n_ended++;
        assert_int_equal(s->state, PERFD_FLEET_ENDED);
        assert_string_equal(end->reason, "stopped");
        assert_int_equal(perfd_fleet_take(r->fleet, &m), PERFD_E_STATE);
        assert_int_equal(perfd_fleet_forget(r->fleet, s), PERFD_E_STATE);
        free(p.bytes);
}

static inline void on_refused(void *userdata, const perfd_fleet_stream *s, const char *why) {
        Rig *r = userdata;

        r->n_refused++;
        (void)snprintf(r->refused, sizeof(r->refused), "%s", why);
}

static inline void rig_init_with(Rig *r, perfd_fleet_options options, bool by_batches) {
        perfd_fleet_callbacks c = PERFD_FLEET_CALLBACKS_INIT;

        *r = (Rig){ .fleet = NULL };
        c.begin = on_begin;
        if (by_batches)
                c.batch = on_batch;
        else
                c.item = on_item;
        c.gap = on_gap;
        c.end = on_end;
        c.refused = on_refused;
        options.missing = "gone";
        assert_int_equal(perfd_fleet_new(&options, &c, r, &r->fleet), 0);
}

static inline void rig_init(Rig *r) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;

        o.from_oldest = true;
        rig_init_with(r, o, false);
}

static inline int take(Rig *r, Played *p) {
        const perfd_fleet_message m = message_of(p);

        return perfd_fleet_take(r->fleet, &m);
}

static inline void give(Rig *r, Played p) {
        int k = take(r, &p);

        if (k == PERFD_E_NEEDED) {
                Played d = played_descriptors();
                const perfd_fleet_message m = message_of(&d);

                r->n_asked++;
                assert_string_equal(perfd_fleet_needed(r->fleet), d.subject);
                assert_int_equal(perfd_fleet_describe(r->fleet, &m), 0);
                assert_null(perfd_fleet_needed(r->fleet));
                free(d.bytes);
                k = take(r, &p);
        }
        assert_int_equal(k, 0);
        free(p.bytes);
}

static inline uint64_t lost_of(const perfd_fleet_stream *s, const char *reason) {
        for (size_t i = 0; i < s->n_lost; i++)
                if (strcmp(s->lost[i].reason, reason) == 0)
                        return s->lost[i].count;
        return 0;
}

/* Of all that was matched; what is 0 has no row. */
static inline void check_sum(const perfd_fleet_stream *s, uint64_t matched, uint64_t consumed, size_t n_lost) {
        uint64_t sum = s->consumed + s->skipped;

        for (size_t i = 0; i < s->n_lost; i++) {
                assert_true(s->lost[i].count > 0);
                sum += s->lost[i].count;
        }
        assert_int_equal(s->consumed, consumed);
        assert_int_equal(s->n_lost, n_lost);
        assert_true(s->has_matched);
        assert_int_equal(s->matched, matched);
        assert_int_equal(sum, matched);
        assert_true(s->balanced);
}

static inline const perfd_fleet_stream *only(const Rig *r) {
        assert_null(perfd_fleet_get_stream(r->fleet, 1));
        return perfd_fleet_get_stream(r->fleet, 0);
}
