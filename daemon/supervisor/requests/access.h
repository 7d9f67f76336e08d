/*
 * For the supervisor: what a client of the stream socket may, by access.rules. Without rules, for root, and for the control
 * socket,
 * it is what the socket allows. Nothing is kept of an answer: a reload holds from the next request on. Main thread only.
 */
#pragma once

#include "daemon/supervisor/supervisor.h"

typedef struct Access {
        bool is_limited;        /* rules decide */
        const ConfigRule *rule; /* the one that does; NULL: none is for this client, which may nothing then */
        size_t number;          /* of the rule, from 1 */
        uid_t uid;
} Access;

#define ACCESS_ALL ((Access){ .is_limited = false })

/* Of a request, whose handler uses it before others are served. Refused: its groups are not known. */
int access_of(const Supervisor *s, const Connection *c, Access *ret, Explanation *e);

bool access_has_status(const Access *a);
/* Samples of an event of this name. Other names than this one say nothing of it: for a glob, ask of each event that it means. */
bool access_has_samples(const Access *a, const char *name);
/* Some event, and change or remove it: supervisor/events/own.h says which. */
bool access_may_add(const Access *a);
bool access_may_emit(const Access *a, const char *name);
/* REFUSED_DENIED "not-granted", with the rule that decides; `what` as in "%s is not granted". */
int access_refuse(const Access *a, const char *what, Explanation *e);
/* Whom a sample is about: nobody, or a thread of its own uid. Else refused. */
int access_check_emitter(const Access *a, uint32_t pid, uint32_t tid, Explanation *e);
/* What it may, for its own status; the caller's to free_unpacked(), also of -ENOMEM. */
int access_message(const Access *a, Perfd__V1__Access **ret);

/*
 * Of a subscription that is being made: what it selects is granted, and its condition joined to that of the rule. Refused: a name
 * in it is not granted, or nothing is.
 */
int access_limit(const Access *a, uint32_t records, Subscription *u, Explanation *e);

/* Who asks for a stream, into its admission. As access_of() */
int access_remember(const Connection *c, Admission *a, Explanation *e);
/*
 * Behind a reload: other rules hold. Streams that they do not grant as they are end with the reason "not-granted"; what a stream
 * may have is never less than it asked for, and never more than it was granted. Negative: fatal.
 */
int access_change(Supervisor *s, Config *c);

/* What is wrong with the predicates of rules; the list is not finished. -ENOMEM */
int access_check(const Config *c, ConfigDiagnostics *m);
