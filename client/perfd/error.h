/* Why a function failed. Pure types; perfd_client_error() in client.h gives what a client has kept. */
#pragma once

#include "declarations.h"

PERFD_BEGIN_DECLARATIONS

/* What functions return that fail for a reason which a caller can act on; negative: -errno. */
enum {
        PERFD_E_REFUSED = 1, /* the daemon says no: perfd_error.refusal, reason, message, position */
        PERFD_E_UNREACHABLE, /* nobody listens there, or we may not connect */
        PERFD_E_CLOSED,      /* the daemon closed the connection without a word */
        PERFD_E_PROTOCOL,    /* the daemon sent what the protocol does not allow; the connection is of no use any more */
        PERFD_E_ENDED,       /* the stream has ended, after its `end` callback: nothing more will come */
        PERFD_E_STATE,       /* not connected, connected already, or the connection is a stream */
        PERFD_E_INVALID,     /* an argument that cannot be right; nothing was sent */
        PERFD_E_TIMEOUT,     /* no answer within perfd_client_set_timeout() */
};

/* Why the daemon refused: the kind of mistake. */
typedef enum perfd_refusal {
        PERFD_REFUSED_NOT = 0,
        PERFD_REFUSED_INVALID = 1,     /* the request cannot be right */
        PERFD_REFUSED_NOT_FOUND = 2,
        PERFD_REFUSED_EXISTS = 3,
        PERFD_REFUSED_DENIED = 4,      /* this connection, or the daemon itself, may not */
        PERFD_REFUSED_EXHAUSTED = 5,   /* a limit or quota: reason names it */
        PERFD_REFUSED_UNSUPPORTED = 6, /* this kernel or machine cannot */
        PERFD_REFUSED_INTERNAL = 7,    /* perfd's fault: see its log */
        PERFD_REFUSED_VERSION = 8,     /* protocol version not spoken */
} perfd_refusal;

typedef struct perfd_error {
        int code;              /* what the function returned; 0 if nothing failed yet */
        perfd_refusal refusal; /* with PERFD_E_REFUSED */
        const char *reason;    /* for programs: a stable word, e.g. "unknown-event", "unreachable" */
        const char *message;   /* for people: what, where, what to do */
        unsigned position;     /* 1 + byte offset of the mistake in an expression, filter or YAML text; 0 is none */
} perfd_error;

PERFD_END_DECLARATIONS
