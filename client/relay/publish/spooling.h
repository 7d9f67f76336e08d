/*
 * What lies between routes and the publisher. Without a directory that is only the publisher's list in memory. With one, each message is
 * in the spool before the publisher has it, and those that memory has no room for are read from there later. The relay's thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "client/relay/publish/spool.h"
#include "client/relay/publish/spool-sync.h"

typedef struct Publishing Publishing;

typedef struct Spooling {
        void (*look)(Publishing *p); /* there may be room, or messages to load */
        Spool *spool; /* NULL: there is no directory */
        SpoolSync *sync;
        Message *oldest, *newest;  /* in the spool, and with the publisher */
        Message *waiting, **end;   /* the spool takes none; more than what one packet is cut into: routes have stopped */
        uint64_t n_only_in_memory; /* with the publisher, and not in the spool, because the disk takes nothing */
        uint64_t last_before;      /* the newest one at the tick before */
        sd_event_source *tick, *loading;
        bool is_ticking, has_failed; /* has_failed: since the last tick */
        bool is_closing;           /* nothing but ends of streams is taken any more */
        int said;                  /* why the spool takes nothing: SPOOL_E_FULL or an errno, negative; 0: it does */
} Spooling;

/* A Refusal, explained; or -errno. What an earlier run has left is published from now on. look() calls spooling_go_on(). */
int spooling_start(Publishing *p, void (*look)(Publishing *p), Explanation *e);
void spooling_publish(Publishing *p, Message *m);
/* Of one that the publisher has given back, which is freed next. */
void spooling_forget(Publishing *p, Message *m);
/* After messages were stored: there may be room. */
void spooling_go_on(Publishing *p);
bool spooling_is_full(const Publishing *p);
/*
 * The relay ends. If the limit is reached, what waits is taken all the same, at most a packet, and the ends of streams; for all else there
 * is no room, and routes drop it, with a gap.
 */
void spooling_begin_closing(Publishing *p);
/* Messages that are neither stored nor in the directory. */
uint64_t spooling_count_unsafe(const Publishing *p);
/* Says what stays there. */
void spooling_stop(Publishing *p);
