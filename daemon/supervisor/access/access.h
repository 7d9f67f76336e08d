/*
 * What a client of the stream socket may, by access.rules. Without rules, for root, and for the control socket, it is what the
 * socket allows. A connection may have limited itself further (Hello.limit), on either socket. Nothing is kept of an answer: a reload holds from the next request on. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"
#include "daemon/control/control.h"
#include "proto/perfd.pb-c.h"

typedef struct Access {
        bool is_limited;        /* rules or a limit decide */
        bool is_ruled;          /* rules do */
        const ConfigRule *rule; /* the one that does; NULL: none is for this client, which may nothing then */
        size_t number;          /* of the rule, from 1 */
        uid_t uid;
        const Perfd__V1__Limit *limit; /* of the connection itself; NULL: none */
} Access;

#define ACCESS_ALL ((Access){ .is_limited = false })

/* Of a request, whose handler uses it before others are served. Refused: its groups are not known. */
int access_of(const Config *config, const Connection *c, Access *ret, Explanation *e);

/* Of one whose credentials are known, and to whom rules apply (access_is_ruled()). */
Access access_for(const Config *config, const Credentials *who);
/* It came by the stream socket, and is not root. */
bool access_is_ruled(const Peer *peer);
/* A name or a glob of the list means this name. */
bool access_list_has(const Strings *list, const char *name);

/* Of Hello: whether its parts are understood. REFUSED_INVALID */
int access_check_limit(const Perfd__V1__Limit *limit, Explanation *e);

bool access_has_status(const Access *a);
/* Samples of an event of this name. Other names than this one say nothing of it: for a glob, ask of each event that it means. */
bool access_has_samples(const Access *a, const char *name);
/* The same, and no predicate selects some of them, or none. */
bool access_has_all_samples(const Access *a, const char *name);
/* All samples of an event of this name, and so how many there are: not those that a predicate selects, or that it emits. */
bool access_has_counts(const Access *a, const char *name);
/* Some event, and change or remove it: supervisor/events/own.h says which. */
bool access_may_add(const Access *a);
bool access_may_emit(const Access *a, const char *name);
/* Raw bytes of samples. */
bool access_has_raw(const Access *a);
/* REFUSED_DENIED "not-granted", with the rule or the limit that decides; `what` as in "%s is not granted". */
int access_refuse(const Access *a, const char *what, Explanation *e);
/* The same, of what changes something, on a connection with a limit. */
int access_refuse_change(const Access *a, const char *what, Explanation *e);
/* Whom a sample is about: nobody, or a thread of its own uid. Else refused. */
int access_check_emitter(const Access *a, uint32_t pid, uint32_t tid, Explanation *e);
/* What it may, for its own status; the caller's to free_unpacked(), also of -ENOMEM. */
int access_message(const Access *a, Perfd__V1__Access **ret);

/* What is wrong with the predicates of rules; the list is not finished. -ENOMEM */
int access_check(const Config *c, ConfigDiagnostics *m);
