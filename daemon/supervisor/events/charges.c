/* Fds that are not open for an event any more, and not closed yet, are charged to the uid that made perfd open them. */
#include "daemon/supervisor/events/charges.h"

#include <stdlib.h>

/* What of one uid is not closed yet. */
typedef struct UidCharge {
        struct UidCharge *next;
        uint32_t uid;
        _Atomic(size_t) n_closing; /* the closer has them */
        size_t n_deferred;             /* their close is deferred for a reader that does not answer */
} UidCharge;

static size_t closing(const UidCharge *c) {
        return atomic_load_explicit(&c->n_closing, memory_order_relaxed);
}

/* NULL: of root, or there is no memory. */
static UidCharge *charge_of(Events *s, uint32_t uid) {
        UidCharge *c = s->charges, *idle = NULL;

        thread_assert(THREAD_MAIN);
        if (uid == 0)
                return NULL;
        for (; c && c->uid != uid; c = c->next)
                idle = closing(c) + c->n_deferred == 0 ? c : idle;
        if (!c && idle) { /* so there are no more than uids whose fds are being closed */
                c = idle;
                c->uid = uid;
        }
        if (!c) {
                c = calloc(1, sizeof(*c));
                if (!c)
                        return NULL;
                *c = (UidCharge){ .next = s->charges, .uid = uid };
                s->charges = c;
        }
        return c;
}

_Atomic(size_t) *events_closing_of(Events *s, uint32_t uid) {
        UidCharge *c = charge_of(s, uid);

        return c ? &c->n_closing : NULL;
}

void events_charge_deferred(Events *s, uint32_t uid, ptrdiff_t n_fds) {
        UidCharge *c = charge_of(s, uid);

        if (c) /* without memory it was not charged before */
                c->n_deferred = n_fds < 0 && c->n_deferred < (size_t)-n_fds ? 0 : c->n_deferred + (size_t)n_fds;
}

void events_free_charges(Events *s) {
        for (UidCharge *next; s->charges; s->charges = next) {
                next = s->charges->next;
                free(s->charges);
        }
}

uint32_t events_charged_uid(const Events *s) {
        return s->operations->running ? s->operations->running->uid : 0;
}

size_t events_charged_fds(const Events *s, uint32_t uid) {
        size_t n = 0;

        for (const UidCharge *c = s->charges; c; c = c->next)
                n += c->uid == uid ? closing(c) + c->n_deferred : 0;
        return n;
}
