/* Clients of the rig's perfd: they connect to its sockets, and what they ask is answered by the loop of main and the dispatcher. */
#pragma once

#include "proto/frame.h"
#include "tests/unit/supervisor-rig.h"

typedef struct RigClient {
        Rig *rig;
        int fd;
        FrameReader in;
        uint64_t last_id;
} RigClient;

/* All that main and the dispatcher can do now. */
void rig_turn(Rig *rig);
/* Where events may be changed, or else the stream socket. */
void rig_connect(Rig *rig, RigClient *c, bool may_change);
void rig_hang_up(RigClient *c);
/* The same in the middle of what main does. */
void rig_close(RigClient *c);
/* Without an answer yet; the id is given here. */
void rig_send(RigClient *c, Perfd__V1__Request *request);
/* The same in the middle of what main does; and whether something has come since, which is left there. */
void rig_post(RigClient *c, Perfd__V1__Request *request);
bool rig_is_answered(const RigClient *c);
/* What comes next, for free_unpacked(); NULL: nothing. */
Perfd__V1__ServerMessage *rig_receive(RigClient *c);
/* A request of this kind, with its message; its answer is the next thing that comes. */
Perfd__V1__ServerMessage *rig_ask(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message);
/* The same; it is granted, which is asserted, or refused for a reason. */
void rig_say(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message);
void rig_say_refused(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message, const char *reason);
/* Whose those are that connect from now on, until another one is said; at first root, for whom there are no rules. */
void rig_become(uint32_t uid);

/* What a stream has brought since it began. */
typedef struct RigStream {
        RigClient client;
        size_t n_descriptors, n_items, n_removed;
        size_t n_of_cpu[RIG_CPUS];
        uint64_t n_gaps;       /* samples in them */
        uint64_t last_field;   /* the last number of the last item that has one */
        bool has_started, is_in_order; /* each item is as old as the one before it, or younger */
        uint64_t last_time;
        char end[32];          /* its reason; "": it goes on */
        Perfd__V1__ServerMessage *closing; /* with the ledger; NULL: the same */
} RigStream;

/* By a client of its own. 0, or the status of the refusal, whose reason is rig->e.text then, and nothing is to be freed. */
int rig_subscribe(Rig *rig, RigStream *s, const Perfd__V1__SubscribeRequest *q);
/* On a connection that has limited itself before; NULL: it has not. */
int rig_subscribe_limited(Rig *rig, RigStream *s, const Perfd__V1__Limit *limit, const Perfd__V1__SubscribeRequest *q);
/* Readers do what they do at a tick, and all that came of it is read. */
void rig_read(RigStream *s);
/* As a client that says stop, and reads to the end; asserted. */
void rig_end(RigStream *s);
/* It hangs up, without a word if it has not ended. */
void rig_leave(RigStream *s);
