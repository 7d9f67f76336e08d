/* For `fleet`: messages to streams, by libperfd, with descriptors from where the messages come from; and what cannot be read is said. */
#pragma once

#include "client/perfctl/fleet/source.h"

#define FLEET_STREAMS_MAX 10000

typedef struct FleetStreams {
        Perfctl *p;
        FleetSource *source;
        perfd_fleet *fleet;
        size_t n_alien; /* messages of no relay that libperfd has not seen */
        bool may_forget; /* where there are too many, the one from which nothing has come for longest; else the new one is not read */
        bool has_lost;   /* one that is forgotten has */
        unsigned long long n_cut; /* of these */
        void (*item)(struct FleetStreams *l, const perfd_fleet_stream *s, const perfd_item *item); /* NULL: they are only counted */
        void (*gap)(struct FleetStreams *l, const perfd_fleet_stream *s, const perfd_gap *gap);    /* or NULL */
} FleetStreams;

/* is_from_oldest: what is missing at the beginning has expired; else nobody has asked for it. */
void fleet_streams_init(FleetStreams *l, bool is_from_oldest);
/* 0, or an exit status after a message. What cannot be read is counted, and said once. */
int fleet_streams_take(FleetStreams *l, const FleetMessage *m);
/* A stream has parts of a packet, of which others are to come. */
bool fleet_streams_wait_for_part(const FleetStreams *l);
/*
 * What the relay of `about` says of the newest stream of a route, when all messages that there were then have been read: what it has
 * stored, and is not there, has expired. An exit status, as above.
 */
int fleet_streams_reckon(FleetStreams *l, const FleetMessage *about, const perfd_route_status *status);
/* Something of it is not there, or may not be: what had not been published of one that was cut off nobody has counted. */
bool fleet_stream_may_lack(const perfd_fleet_stream *s);
/* On stderr: how much was not read, if something was not, and how many streams were cut off. */
void fleet_streams_say(const FleetStreams *l);
void fleet_streams_deinit(FleetStreams *l);
