/*
 * A name in a request: that of an event or a glob of such, "@GROUP" with the name of a group or a glob, or "#ID". Compiled, so that
 * a request may have many of them, for many events.
 */
#pragma once

#include "daemon/base/glob.h"
#include "daemon/supervisor/events/pending.h"
#include "daemon/supervisor/events/events.h"

#define NAME_GLOBS_MAX 256 /* of one request: each is matched with the names of all events */

typedef struct NamePattern {
        const char *text; /* borrowed; of a group without the @ */
        Pattern *glob;    /* NULL: it is the text alone */
        bool is_group;
        uint32_t id; /* or 0 */
} NamePattern;

typedef struct NamePatterns {
        NamePattern *items;
        size_t n;
} NamePatterns;

#define NAME_PATTERNS_NULL ((NamePatterns){ .n = 0 })

/* REFUSED_INVALID "bad-name": a glob that is too long. -ENOMEM */
int name_pattern_init(NamePattern *ret, const char *text, Explanation *e);
void name_pattern_deinit(NamePattern *p);
/* Of several; REFUSED_EXHAUSTED "too-many-names": more globs than NAME_GLOBS_MAX. */
int name_patterns_init(NamePatterns *ret, char *const *texts, size_t n, Explanation *e);
void name_patterns_deinit(NamePatterns *p);
/* It means one event at most, which is looked up. */
static inline bool name_pattern_is_exact(const NamePattern *p) {
        return !p->glob && !p->is_group;
}

bool name_pattern_selects(const NamePattern *p, const Event *event);
bool name_pattern_selects_pending(const NamePattern *p, const PendingEvent *pending);
