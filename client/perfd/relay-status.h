/*
 * What a relay that publishes says of itself every ten seconds (PROTOCOL.md, NATS). The caller has the bytes of the message, from
 * whatever library of NATS; no client is needed. Times are ns since 1970.
 */
#pragma once

#include "declarations.h"
#include "result.h"
#include "stream.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_relay_status {
        const char *host;    /* under which it publishes */
        const char *machine; /* ids of the machine and of its boot, 32 digits each, which tell hosts of one name from each other */
        const char *boot;
        const char *relay;   /* its version */
        const char *perfd;   /* the version of perfd; "": it was not reached yet */
        const char *reason;  /* "start", "interval", "route": the state of one has changed, "end": nothing follows */
        uint64_t start;      /* when the relay began */
        uint64_t wall;       /* when it said this */
        const perfd_wall_reading *clock; /* the newest one that it has; NULL: none */
        uint64_t held_bytes, spool_bytes; /* what is not stored yet, and its limit in memory */
        uint64_t published;  /* items that were stored since it began */
        uint64_t messages, bytes; /* these were */
        const perfd_count *lost;  /* items that were not published, since it began */
        size_t n_lost;
} perfd_relay_status;

/* The newest epoch of a route: matched = published + held + all of lost. */
typedef struct perfd_route_status {
        const char *name;
        char *const *events;  /* as configured */
        size_t n_events;
        const char *where;    /* "": none */
        bool connected;       /* it has a stream of perfd */
        uint64_t since;       /* when that became so */
        const char *text;     /* why it has none */
        uint64_t epoch;       /* 0: it had no stream yet */
        uint64_t sequence;    /* of the last packet that came from perfd; 0: none */
        uint64_t matched;     /* items of these packets and of their gaps; at the end, as the closing ledger has it */
        const perfd_count *lost;
        size_t n_lost;
        uint64_t published;   /* items that are stored */
        uint64_t held;        /* items that are not stored yet */
        uint64_t stored;      /* sequence number of the last packet that is stored; 0: none */
        uint64_t stored_matched; /* `matched` behind that packet */
        bool ended;           /* its stream has, with a closing ledger */
        bool balanced;        /* the sum, done here */
} perfd_route_status;

/*
 * Reads one of these messages, to be freed by perfd_result_free(). It is a foreign program's word: numbers can be anything. 0;
 * PERFD_E_PROTOCOL: the bytes are no such message, or more than 1 MiB; -ENOMEM.
 */
int perfd_relay_status_read(const void *message, size_t length, perfd_result **ret_result);

/* The relay's row, and that of route i, or NULL behind the last one; the result's own. */
const perfd_relay_status *perfd_result_relay_status(const perfd_result *result);
const perfd_route_status *perfd_result_route_status(const perfd_result *result, size_t i);

PERFD_END_DECLARATIONS
