/*
 * matched = consumed + each loss. Gaps say how many items they have, the headers of packets that cannot be read say it too, and are not
 * believed beyond what the closing ledger leaves; how many a packet had that never came, only the difference says.
 */
#include <stdio.h>
#include <string.h>

#include "client/fleet/fleet.h"

static perfd_count *find_or_add(FleetSum *s, const char *reason) {
        size_t i = 0;

        while (i < s->n_reasons && strncmp(s->reasons[i], reason, FLEET_REASON_SIZE - 1) != 0)
                i++;
        if (i == s->n_reasons && i == FLEET_REASONS) /* a stranger's invention, as the others: one of them has all the rest */
                return &s->rows[FLEET_REASONS - 1];
        if (i == s->n_reasons) {
                (void)snprintf(s->reasons[i], FLEET_REASON_SIZE, "%s", i == FLEET_REASONS - 1 ? "other" : reason);
                s->rows[i] = (perfd_count){ .reason = s->reasons[i] };
                s->n_reasons++;
        }
        return &s->rows[i];
}

void fleet_sum_add(FleetSum *s, const char *reason, uint64_t items) {
        perfd_count *c;

        if (items == 0)
                return;
        c = find_or_add(s, reason);
        c->count = add_saturating(c->count, items);
}

/* "late" is in no gap: perfd has not sent it. */
void fleet_sum_close(FleetSum *s, const perfd_count *dropped, size_t n_dropped, const perfd_fleet_stream *row, bool is_whole) {
        bool has_holes = row->missing > 0 || row->damaged > 0 || row->undescribed > 0;

        for (size_t i = 0; i < n_dropped; i++) {
                const perfd_count *d = &dropped[i];
                perfd_count *c;

                if (d->count == 0 || !(strcmp(d->reason, "late") == 0 || (is_whole && has_holes)))
                        continue;
                c = find_or_add(s, d->reason);
                c->count = c->count > d->count ? c->count : d->count;
        }
}

uint64_t fleet_sum_known(const FleetSum *s, const perfd_fleet_stream *row) {
        uint64_t sum = row->consumed;

        for (size_t i = 0; i < s->n_reasons; i++)
                sum = add_saturating(sum, s->rows[i].count);
        return sum;
}

/* Sums that cannot be right are not compared: they are seen without. */
void fleet_sum_compare(FleetSum *s, const perfd_fleet_stream *row, uint64_t matched) {
        uint64_t holes = add_saturating(row->missing, add_saturating(row->damaged, row->undescribed)), known = fleet_sum_known(s, row);

        s->is_wrong = !s->is_rest_unknown && holes == s->holes && matched - known != s->rest;
        if (s->is_wrong || known > matched)
                return;
        s->rest = matched - known;
        s->holes = holes;
        s->is_rest_unknown = false;
}

static void show(FleetSum *s, perfd_fleet_stream *row, const char *reason, uint64_t items) {
        if (items > 0)
                s->rows[row->n_lost++] = (perfd_count){ .reason = reason, .count = items };
}

static uint64_t take_some(uint64_t *rest, uint64_t most) {
        uint64_t n = *rest < most ? *rest : most;

        *rest -= n;
        return n;
}

void fleet_sum_show(FleetSum *s, perfd_fleet_stream *row, const char *missing, bool is_whole) {
        uint64_t known = fleet_sum_known(s, row), rest, damaged = s->damaged, undescribed = s->undescribed;

        row->lost = s->rows;
        row->n_lost = s->n_reasons;
        row->skipped = 0;
        row->balanced = false;
        if (!row->has_matched) {
                show(s, row, "damaged", damaged);
                show(s, row, "undescribed", undescribed);
                return;
        }
        row->balanced = known <= row->matched;
        rest = row->balanced ? row->matched - known : 0;
        damaged = take_some(&rest, damaged);
        undescribed = take_some(&rest, undescribed);
        if (!is_whole)
                row->skipped = take_some(&rest, s->is_skipped_known ? s->skipped : UINT64_MAX);
        if (row->missing > 0)
                show(s, row, missing, take_some(&rest, UINT64_MAX));
        else if (row->damaged > 0)
                damaged += take_some(&rest, UINT64_MAX);
        else if (row->undescribed > 0)
                undescribed += take_some(&rest, UINT64_MAX);
        show(s, row, "damaged", damaged);
        show(s, row, "undescribed", undescribed);
        row->balanced = row->balanced && rest == 0 && !s->is_wrong;
}
