/*
 * While it goes on, two things tell of losses: gaps, which are exactly what this stream did not get, and LOST records of the
 * kernel's rings, which say only that some event had no room. The closing ledger says all of it, of what is watched alone.
 */
#include "client/perfctl/stream/watch-loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EACH UINT64_C(1000000000) /* ns from one message to the next */

void watch_loss_tell_all(WatchLoss *l, const Perfctl *p) {
        uint64_t dropped = l->dropped - l->told_dropped, ring = l->ring - l->told_ring;

        if (dropped > 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%" PRIu64 " %s dropped, because they are not read as fast as they "
                                   "come: --queue SIZE lets more of them wait, %s", dropped,
                                   dropped == 1 ? "item was" : "items were", l->advice);
        if (ring > 0)
                (void)perfctl_fail(p, PERFCTL_OK, "the kernel had no room in its rings for %" PRIu64 " records, of these events "
                                   "or of others: how many of these, is said at the end", ring);
        l->told_dropped = l->dropped;
        l->told_ring = l->ring;
}

uint64_t watch_loss_tell(WatchLoss *l, const Perfctl *p, uint64_t now) {
        if (l->dropped == l->told_dropped && l->ring == l->told_ring)
                return UINT64_MAX;
        if (l->told_at > 0 && now < l->told_at + EACH)
                return l->told_at + EACH;
        watch_loss_tell_all(l, p);
        l->told_at = now;
        return UINT64_MAX;
}

char *watch_loss_text(const perfd_end *end, uint64_t *ret_sum) {
        char *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));

        *ret_sum = 0;
        for (size_t i = 0; i < end->n_lost; i++) {
                fprintf(f, "%s%s %" PRIu64, i > 0 ? ", " : "", end->lost[i].reason, end->lost[i].count);
                *ret_sum += end->lost[i].count;
        }
        must_have(fclose(f) == 0 ? text : NULL);
        return text;
}

bool watch_loss_is_of_stream(const perfd_end *end) {
        const perfd_event_ledger *e;

        for (size_t i = 0; (e = perfd_result_event_ledger(end->ledger, i)); i++)
                if (!e->since)
                        return false;
        return true;
}
