/* Inside the supervisor: one request on its way to its response. Main thread only. */
#pragma once

#include "daemon/supervisor/access/access.h"
#include "daemon/kernel/doctor/doctor.h"
#include "daemon/kernel/symbol/kernel-places.h"
#include "daemon/supervisor/configuration/configuration.h"

/* Refusals of events that this machine cannot count, which the log has said: supervisor/requests/requests.c. */
typedef struct UncountedSaid {
        uint64_t connection; /* of the last one */
        uint64_t hashes[64]; /* of their texts; the oldest is forgotten first */
        size_t next;
} UncountedSaid;

/* The refusal of a name that nobody knows, which the log has said last. */
typedef struct UnknownSaid {
        uint64_t connection, hash;
} UnknownSaid;

typedef struct Requests {
        Settings *settings;
        Host *host;
        Operations *operations;
        Readers *readers;
        Events *events;
        Resolver *resolver;
        Subscriptions *subscriptions;
        Ledger *ledger;
        Streams *streams;
        Changes *changes;
        Configuration *configuration;

        DoctorReport examined; /* the last one, for clients without privileges */
        nsec_t examined_at;
        _Atomic(size_t) n_doctor_fds; /* that the closer has; relaxed: a count that nothing is read behind */
        KernelPlaces places; /* of the kernel's functions, for as long as somebody asks */
        uint64_t places_modules; /* what was loaded then */
        sd_event_source *places_timer; /* NULL: nobody has asked yet */
        UncountedSaid uncounted_said;
        UnknownSaid unknown_said;
} Requests;

typedef struct RequestContext {
        Requests *requests;
        Connection *connection;
        const Perfd__V1__Request *request;
        Perfd__V1__Response *response; /* what it points to is freed as by free_unpacked() */
        Access access;                 /* what rules grant; until others are served */
        bool answered;                 /* the handler has done it itself */
} RequestContext;

/*
 * Handlers return 0 with the response filled, a Refusal with an explanation, or a negative, which is fatal. One for
 * each kind of request: the table is in supervisor/requests/requests.c.
 */
typedef int (*Handler)(RequestContext *a, Explanation *e);

/* supervisor/requests/request-log.c: what one that succeeded has changed, in one line. */
void request_outcome(const RequestContext *a, char *text, size_t size);
/* The events that it has changed: their names alone, as many as fit; or "". */
void request_events(const RequestContext *a, char *text, size_t size);
/*
 * supervisor/requests/request-memory.c: before a request of a client of the stream socket but root, whether there is memory for what
 * it may take. Refused: "no-memory".
 */
int request_check_memory(const RequestContext *a, Explanation *e);
/*
 * Behind a request that changes nothing, which has ended with a negative: -ENOMEM of its own is refused as "no-memory", and logged
 * here. Any other, or one of those that were served meanwhile, is what it was.
 */
int request_absorb_no_memory(const RequestContext *a, const char *what, int r, Explanation *e);
/* supervisor/requests/lists.c: a list of many events waits for a turn of its own. */
bool list_takes_long(const Requests *s, const Perfd__V1__ListRequest *q);
int handle_list(RequestContext *a, Explanation *e);

/* supervisor/requests/available.c */
int handle_available(RequestContext *a, Explanation *e);

/* supervisor/requests/doctor.c */
int handle_doctor(RequestContext *a, Explanation *e);

/* supervisor/requests/event-formats.c */
int handle_event_formats(RequestContext *a, Explanation *e);

/* supervisor/requests/kernel-names.c */
int handle_kernel_names(RequestContext *a, Explanation *e);
/* When perfd stops. */
void requests_forget_kernel_names(Requests *s);

/* supervisor/requests/changes.c */
int handle_add(RequestContext *a, Explanation *e);
int handle_remove(RequestContext *a, Explanation *e);
int handle_enable(RequestContext *a, Explanation *e); /* and disable */
int handle_set_filter(RequestContext *a, Explanation *e);
int handle_validate(RequestContext *a, Explanation *e);
int handle_reload(RequestContext *a, Explanation *e);
int handle_plan(RequestContext *a, Explanation *e);
int handle_apply(RequestContext *a, Explanation *e);
int handle_set_period(RequestContext *a, Explanation *e);

/* supervisor/requests/emit.c: one that takes long waits for a turn of its own. */
bool emit_takes_long(const Requests *s, const Perfd__V1__EmitRequest *q);
int handle_emit(RequestContext *a, Explanation *e);

/* Control.on_request; userdata is the Requests. */
int requests_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request);
