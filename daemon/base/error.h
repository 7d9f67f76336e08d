/*
 * Return values of the daemon's functions.
 *
 *   0          success
 *   negative   -errno: fatal, only passed on, never compared (but where it is absorbed: requests/request-memory.c)
 *   positive   a Refusal: part of the contract, caused by a peer, a configuration, or a refusal of the kernel
 *
 * An Explanation has the text for people; control/status.c maps a Refusal to a wire status.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "daemon/base/error-trail.h"

typedef enum Refusal {
        REFUSED_INVALID = 1, /* the request is wrong and will stay wrong */
        REFUSED_NOT_FOUND,   /* the named object does not exist */
        REFUSED_EXISTS,      /* the object to create already exists */
        REFUSED_DENIED,      /* the peer, or the daemon itself, lacks a permission */
        REFUSED_EXHAUSTED,   /* a limit or quota */
        REFUSED_UNSUPPORTED, /* not supported by this kernel or machine */
        REFUSED_CANCELLED,   /* interrupted: the peer disconnected, or the daemon stops (base/checkpoint.h) */
        _REFUSED_MAX,
} Refusal;

typedef struct Explanation {
        char text[640];     /* for people: what was requested, the result, the cause, the remedy; printable (printable.h) */
        const char *reason; /* for programs: a stable word with static lifetime, or NULL */
        unsigned position;  /* 1 + byte offset of the error in an expression or filter, 0 if none */
        const char *list;   /* the key of the refused item of a target, "pids", with static lifetime; or NULL */
        size_t item;        /* its index in that list */
} Explanation;

#define EXPLANATION_NULL ((Explanation){ .text = "" })

/*
 * Fills `e` (which may be NULL) and returns `refusal`, so that a refusal is one statement. Unprintable characters of the text,
 * including line breaks, become \xNN.
 */
int refuse(Explanation *e, Refusal refusal, const char *reason, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* The kernel lacks memory for the request on `what`. A failed allocation of perfd itself is -ENOMEM instead. */
int refuse_kernel_memory(Explanation *e, const char *what);

/* Asserts that a call succeeds, which can fail only by a bug. Also active in release builds. */
#define must(expr)                                                                                                     \
        ({                                                                                                             \
                __typeof__(expr) must_ = (expr);                                                                       \
                assert(must_ >= 0);                                                                                    \
                must_;                                                                                                 \
        })
