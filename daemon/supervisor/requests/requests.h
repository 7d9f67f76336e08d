/* Inside the supervisor: one request on its way to its response. Main thread only. */
#pragma once

#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/supervisor.h"

typedef struct RequestContext {
        Supervisor *supervisor;
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
/* supervisor/requests/lists.c */
int handle_list(RequestContext *a, Explanation *e);

/* supervisor/requests/available.c */
int handle_available(RequestContext *a, Explanation *e);

/* supervisor/requests/doctor.c */
int handle_doctor(RequestContext *a, Explanation *e);

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

/* supervisor/requests/emit.c */
int handle_emit(RequestContext *a, Explanation *e);

/*
 * supervisor/events/specs.c. What a client asks for as a spec, into a null image; on failure the caller's to deinit. Refused: what
 * contradicts itself. With 0, a text in `e` is worth a note: it names a CPU that is offline, or one twice. And back, into a new message, which is the caller's also when memory runs out half way.
 */
int spec_from_message(Supervisor *s, const Perfd__V1__EventSpec *m, EventSpec *to, Explanation *e);
/* A filter alone; "" and NULL leave *to. */
int filter_from_message(const char *text, char **to, Explanation *e);
/* Period and frequency of what is set, 0 if not. */
int rate_check(uint64_t period, uint64_t frequency, Explanation *e);
int spec_message(const EventSpec *from, Perfd__V1__EventSpec **ret);
/* The same, to be made a spec again later: of a target it has only the name, and means what the configuration says of it then. */
int spec_message_to_keep(const EventSpec *from, Perfd__V1__EventSpec **ret);
/* Copies for messages and specs: NULL and 0 stay so. -ENOMEM. */
int string_set(char **to, const char *from);
int numbers_set(uint32_t **to, size_t *ret_n, const uint32_t *from, size_t n);
