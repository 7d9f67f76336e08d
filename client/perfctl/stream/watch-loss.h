/* For verbs that read a stream: what was lost, told while it happens and at the end. */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct WatchLoss {
        const char *advice;               /* what else helps who is too slow */
        uint64_t dropped, ring;           /* items of gaps; what LOST records of any ring speak of, whosever they were */
        uint64_t told_dropped, told_ring; /* of these */
        uint64_t told_at;                 /* CLOCK_MONOTONIC, ns; 0: nothing was told yet */
} WatchLoss;

/* What was not told yet, at most once a second. When to ask again: now, an absolute time of CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t watch_loss_tell(WatchLoss *l, const Perfctl *p, uint64_t now);
/* The same at once, before nothing more can be told. */
void watch_loss_tell_all(WatchLoss *l, const Perfctl *p);
/* What the closing ledger says was lost: "outbox 763902, kernel_ring 3", malloc; and how much that is. */
char *watch_loss_text(const perfd_end *end, uint64_t *ret_sum);
/* Whether the ledger can tell what was lost during the stream from what was lost before. */
bool watch_loss_is_of_stream(const perfd_end *end);
