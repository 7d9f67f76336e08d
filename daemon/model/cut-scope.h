/*
 * Which events a cut is of: it reads no fds of others, whose number and children may be anybody's. Made by main, and shared by the
 * commands to all readers; immutable.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

typedef struct CutScope {
        _Atomic(unsigned) n_refs; /* taken relaxed by who has one; given with acq_rel */
        size_t n_ids;
        uint32_t ids[]; /* of events; sorted by cut_scope_finish() */
} CutScope;

/* With one reference, and room for so many ids, of which there are none yet. NULL: no memory. */
CutScope *cut_scope_new(size_t n_most);
CutScope *cut_scope_ref(CutScope *c);
CutScope *cut_scope_unref(CutScope *c);
DEFINE_CLEANUP(CutScope *, cut_scope_unref)
/* There is room for it. */
static inline void cut_scope_add(CutScope *c, uint32_t id) {
        c->ids[c->n_ids++] = id;
}
/* Nothing is added any more. */
void cut_scope_finish(CutScope *c);
/* NULL: of all events. */
bool cut_scope_has(const CutScope *c, uint32_t id);
