/*
 * For all of the daemon: what a function can say.
 *
 *   0          success
 *   negative   -errno: fatal to whoever carries it, never compared
 *   positive   a Refusal: part of the contract, caused by a peer, a configuration or the kernel's no
 *
 * The text for people travels beside it in an Explanation; control/status.c turns a Refusal into a wire status.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "daemon/base/error-trail.h"

typedef enum Refusal {
        REFUSED_INVALID = 1, /* the request cannot be right */
        REFUSED_NOT_FOUND,   /* what it names is not there */
        REFUSED_EXISTS,      /* what it makes is there already */
        REFUSED_DENIED,      /* the peer, or the daemon itself, may not */
        REFUSED_EXHAUSTED,   /* a limit or quota */
        REFUSED_UNSUPPORTED, /* this kernel or machine cannot */
        REFUSED_CANCELLED,   /* in the middle: the peer is gone, or the daemon stops (base/checkpoint.h) */
        _REFUSED_MAX,
} Refusal;

typedef struct Explanation {
        char text[640];     /* for people: what was asked, what was said, why, what to do; printable (printable.h) */
        const char *reason; /* for programs: a stable word with static lifetime, or NULL */
        unsigned position;  /* 1 + byte offset of the mistake in an expression or filter, 0 if none */
        const char *list;   /* the key of a target that names what is refused, "pids", with static lifetime; or NULL */
        size_t item;        /* which of that list, from 0 */
} Explanation;

#define EXPLANATION_NULL ((Explanation){ .text = "" })

/*
 * Fills `e` (which may be NULL) and returns `refusal`, so that a refusal is one statement. What does not print in the text,
 * whoever wrote it, becomes \xNN, line breaks too.
 */
int refuse(Explanation *e, Refusal refusal, const char *reason, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* The kernel has none for what somebody asked for, which `what` names. Our own running out is -ENOMEM where it is malloc'ed. */
int refuse_kernel_memory(Explanation *e, const char *what);

/* A call that cannot fail unless the program is wrong. Stays on in release. */
#define must(expr)                                                                                                     \
        ({                                                                                                             \
                __typeof__(expr) must_ = (expr);                                                                       \
                assert(must_ >= 0);                                                                                    \
                must_;                                                                                                 \
        })
