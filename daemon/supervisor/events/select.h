/* For the supervisor: which events names of a request mean. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/model/cut-scope.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/events/events.h"

typedef struct EventRef {
        uint32_t id;
        char *name;
} EventRef;
typedef struct EventRefs {
        EventRef *refs;
        size_t n;
} EventRefs;
void event_refs_deinit(EventRefs *r);
int event_refs_add(EventRefs *r, uint32_t id, const char *name);
/* For a cut of these events. -ENOMEM */
int events_cut_scope(Registration *const *list, size_t n, CutScope **ret);
/* A name, a glob, "#ID" or "@GROUP". Each name selects at least one; in malloc'ed memory, in the order of registration, none twice. */
int events_select(const Events *s, char *const *names, size_t n, Registration ***ret, size_t *ret_n,
                  Explanation *e);
/* What a change is about, and what its answer says if it succeeds. With pending events: they have no id. */
int events_select_with_refs(const Events *s, char *const *names, size_t n, bool waiting_too, Registration ***ret,
                            size_t *ret_n, EventRefs *ret_refs, Explanation *e);
