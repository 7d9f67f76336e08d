/*
 * Where memory ends by RLIMIT_AS or by what Linux promises, malloc(3) fails, and what perfd has begun to change it cannot always
 * finish or undo: then it ends. So who may only ask is asked to leave enough before anything begins. Under the limit of a cgroup
 * malloc(3) does not fail, and queues take all that there is until somebody else needs it, so that this is no reason to refuse.
 *
 * What a request may take was measured: a text of YAML of 1 MiB takes 19 times its size at most, everything else some megabytes.
 * Trials are one at a time, and change nothing: one that finds no memory all the same has undone what it began, as after any
 * refusal, and is over.
 */
#include "daemon/supervisor/requests/requests.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

#define LEFT_LEAST ((int64_t)8 << 20)
#define TEXT_TAKES 24 /* for each byte of it */

static int64_t bytes_of_texts(const Perfd__V1__Request *q) {
        switch (q->body_case) {
        case PERFD__V1__REQUEST__BODY_PLAN:
        case PERFD__V1__REQUEST__BODY_VALIDATE:
        case PERFD__V1__REQUEST__BODY_ADD:
        case PERFD__V1__REQUEST__BODY_SUBSCRIBE:
                return (int64_t)perfd__v1__request__get_packed_size(q);
        default:
                return 0;
        }
}

/* What ends something needs little, and gives more back. */
static bool only_ends(const Perfd__V1__Request *q) {
        return q->body_case == PERFD__V1__REQUEST__BODY_REMOVE || q->body_case == PERFD__V1__REQUEST__BODY_DISABLE;
}

static int refuse_memory(const char *why, Explanation *e) {
        return refuse(e, REFUSED_EXHAUSTED, "no-memory", "perfd may not use as much memory as this needs: %s; request less at "
                      "once, try again when others have ended, or raise perfd's limit (LimitAS=, or vm.overcommit_ratio where "
                      "vm.overcommit_memory is 2)", why);
}

int request_check_memory(const RequestContext *a, Explanation *e) {
        const Peer *peer = connection_peer(a->connection);
        const int64_t needed = LEFT_LEAST + TEXT_TAKES * bytes_of_texts(a->request);
        char why[128];
        int64_t left;

        if (peer->may_change || peer->uid == 0 || only_ends(a->request))
                return 0;
        left = memory_limits_mappable(&a->requests->subscriptions->memory.limits);
        if (left >= needed)
                return 0;
        (void)snprintf(why, sizeof(why), "%lld KiB are left, and it may take %lld", (long long)(left >> 10), (long long)(needed >> 10));
        return refuse_memory(why, e);
}

int request_absorb_no_memory(const RequestContext *a, const char *what, int r, Explanation *e) {
        if (r != -ENOMEM || a->requests->operations->has_failed)
                return r;
        log_print(LOG_ERR, MESSAGE_NO_MEMORY, "%s is refused: %s", what, error_text(r));
        return refuse_memory("an allocation has failed", e);
}
