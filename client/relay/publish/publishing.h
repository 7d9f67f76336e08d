/* All routes of a relay, and the publisher that they share. The relay's thread. */
#pragma once

#include <systemd/sd-event.h>

#include "client/relay/publish/publisher.h"
#include "client/relay/publish/route-counts.h"
#include "client/relay/publish/spooling.h"
#include "proto/perfd.pb-c.h"

typedef struct Route Route;
typedef struct Status Status;

/*
 * `perfd` is the path of its stream socket. What `config` points to must stay. -errno, or a Refusal that was said in the log; NULL if
 * there is no route.
 */
int publishing_start(sd_event *event, const char *perfd, const PublishConfig *config, Publishing **ret);
/* Asks perfd for the end of each stream. */
void publishing_stop(Publishing *p);
/* Each stream has ended, and all of it is stored; or lies in the directory of the spool, if there is no server. Takes NULL. */
bool publishing_is_done(const Publishing *p);
/* What is neither stored by now nor in the directory is lost, which is said in the log. Takes NULL. */
void publishing_free(Publishing *p);
/* What runs goes on as it is, as a part of the new configuration; a difference is said in the log. */
void publishing_keep(PublishConfig *running, PublishConfig *loaded);

/*
 * publishing-access.c, before publishing_keep(): whether only servers, or what says who the relay is, have changed. Then they are
 * exchanged: the running configuration has the new ones.
 */
bool publishing_take_access(PublishConfig *running, PublishConfig *loaded);
/* Goes on with these. */
void publishing_reconnect(Publishing *p, const PublishAccess *access);

/* For routes. */
struct Publishing {
        sd_event *event;
        char *perfd;
        PublishConfig config;
        Publisher *publisher;
        sd_event_source *source;
        Route **routes;
        size_t n_routes;
        uint64_t held;   /* bytes of messages that the publisher has: they are not stored */
        uint64_t n_held; /* these messages */
        uint64_t n_stored, stored_bytes, published; /* messages, bytes of these, items: since the relay began */
        LossCounts lost; /* items, the same */
        Status *status;
        Perfd__V1__WallReading reading; /* the newest one of all routes; `time` 0: none */
        Spooling spooling;
        bool is_stopping, is_connected, has_said_refused;
        char machine[33], boot[33], perfd_version[48], notice[320];
};

void publishing_publish(Publishing *p, Message *m);
/* The state of a route has changed. */
void publishing_tell_route(Publishing *p);
/* The spool is full: what perfd has is left there. */
static inline bool publishing_is_full(const Publishing *p) {
        return spooling_is_full(p);
}

/* What others may know of a route. */
typedef struct RouteState {
        const PublishRoute *config;
        bool is_connected; /* perfd has accepted the subscription */
        uint64_t since;    /* ns since 1970, when that became so */
        char text[200];    /* why it could not begin; or "" */
        RouteCounts counts;
} RouteState;

/* route.c. NULL: no memory. */
Route *route_new(Publishing *p, const PublishRoute *config);
void route_free(Route *r);
/* There may be room again. */
void route_resume(Route *r);
/* Publishes its descriptors again: the server may have lost them. */
void route_describe(Route *r);
void route_stop(Route *r);
bool route_is_done(const Route *r);
RouteState *route_state(Route *r);
