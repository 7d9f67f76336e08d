/* Most calls are a look at the clock: others are served only when the interval has passed. */
#include "daemon/base/checkpoint.h"

static _Thread_local CheckpointServe serve_others;
static _Thread_local void *context;
static _Thread_local nsec_t next;

void checkpoint_set(CheckpointServe serve, void *userdata) {
        serve_others = serve;
        context = userdata;
        next = 0;
}

int checkpoint(Explanation *e) {
        int r;

        if (!serve_others || clock_now(CLOCK_MONOTONIC) < next)
                return 0;
        r = serve_others(context, e);
        next = clock_now(CLOCK_MONOTONIC) + CHECKPOINT_INTERVAL;
        return r;
}
