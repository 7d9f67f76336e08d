/* Fds that nobody needs any more go to the closer; while a reader does not answer that may still read them, that is deferred. */
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/kernel/event/open.h"
#include "daemon/supervisor/events/charges.h"
#include "daemon/supervisor/events/open.h"

/* What was opened only to see that it can be does not wait behind what others have closed. */
static void give_closer(Events *s, const int *fds, size_t n, _Atomic(size_t) *charged) {
        if (operations_is_trial(s->operations))
                closer_close_soon(s->operations->closer, fds, n, charged);
        else
                closer_close(s->operations->closer, fds, n, charged);
}

/* Breakpoints here and now: the next one may need their register. */
void event_fds_close_unknown(Events *s, PerfFdSet *o, uint32_t uid) {
        _cleanup_free_ int *fds = calloc(o->n + 1, sizeof(*fds));
        _Atomic(size_t) *charged = o->n > 0 ? events_closing_of(s, uid) : NULL;
        size_t n = 0;

        for (size_t i = 0; i < o->n; i++)
                if (o->fds[i].is_breakpoint)
                        close_fd(o->fds[i].fd);
                else if (fds)
                        fds[n++] = o->fds[i].fd;
                else
                        give_closer(s, &o->fds[i].fd, 1, charged);
        give_closer(s, fds, n, charged);
        free(o->fds);
        *o = PERF_FD_SET_NULL;
}

typedef struct DeferredFds {
        Events *events;
        PerfFdSet opened;
        uint32_t uid; /* that they are charged to */
} DeferredFds;

static void release_fds(Readers *s, void *object) {
        DeferredFds *k = object;

        s->answering.n_fds -= k->opened.n;
        events_charge_deferred(k->events, k->uid, -(ptrdiff_t)k->opened.n);
        event_fds_close_unknown(k->events, &k->opened, k->uid);
        free(k);
}

void event_fds_close_of(Events *s, PerfFdSet *o, uint32_t uid) {
        DeferredFds *k = NULL;

        if (s->readers->answering.n == 0 || o->n == 0) {
                event_fds_close_unknown(s, o, uid);
                return;
        }
        k = malloc(sizeof(*k)); /* a reader that does not answer may still read them */
        if (!k)
                log_print(LOG_ERR, MESSAGE_NO_MEMORY, "no memory to remember fds that a reader may still use: they are never "
                        "closed");
        s->readers->answering.n_fds += o->n;
        events_charge_deferred(s, uid, (ptrdiff_t)o->n);
        if (k) {
                *k = (DeferredFds){ s, *o, uid };
                readers_defer(s->readers, release_fds, k);
        }
        *o = PERF_FD_SET_NULL;
}

void event_fds_close(Events *s, PerfFdSet *o) {
        event_fds_close_of(s, o, events_charged_uid(s));
}

static void close_one(void *userdata, int fd) {
        Events *s = userdata;

        give_closer(s, &fd, 1, events_closing_of(s, events_charged_uid(s)));
}

void events_give_closer(Events *s, bool is_there) {
        open_set_closer(is_there ? close_one : NULL, s);
}
