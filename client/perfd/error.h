/* Why a function failed. Types only; perfd_client_error() in client.h returns the error of a client. */
#pragma once

#include "declarations.h"

PERFD_BEGIN_DECLARATIONS

/* What functions return if they fail for a cause that the caller can handle; negative: -errno. 0: success. */
enum {
        PERFD_E_REFUSED = 1, /* the daemon refused the request: perfd_error.refusal, reason, message, position */
        PERFD_E_UNREACHABLE, /* no daemon listens on the socket, or the caller may not connect */
        PERFD_E_CLOSED,      /* the daemon closed the connection without an answer */
        PERFD_E_PROTOCOL,    /* the daemon sent what the protocol does not allow; the connection cannot be used any more */
        PERFD_E_ENDED,       /* the stream has ended, after its `end` callback: no more items follow */
        PERFD_E_STATE,       /* not connected, connected already, or the connection is a stream */
        PERFD_E_INVALID,     /* an invalid argument; nothing was sent */
        PERFD_E_TIMEOUT,     /* no answer within perfd_client_set_timeout() */
        PERFD_E_NEEDED,      /* perfd_fleet_take(): another message comes first, perfd_fleet_needed() */
};

/* Why the daemon refused a request: the kind of error. */
typedef enum perfd_refusal {
        PERFD_REFUSED_NOT = 0,
        PERFD_REFUSED_INVALID = 1,     /* the request is invalid in itself */
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
        unsigned position;     /* 1 + byte offset of the error in an expression, filter or YAML text; 0 is none */
} perfd_error;

PERFD_END_DECLARATIONS
