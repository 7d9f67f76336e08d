/*
 * For verbs that read a stream until they are told to end: the loop, and what is said at its end. The verb's own callbacks get what
 * comes, and give `end` on to stream_loop_end().
 */
#pragma once

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/events/removed-events.h"
#include "client/perfctl/events/subscribe-events.h"
#include "client/perfctl/events/task-ends.h"
#include "client/perfctl/stream/watch-loss.h"

/* Of another host the connection by which events were added may end without that of the stream. */
#define STREAM_KEEPER_LOST "the connection by which events were added has ended, and they with it"

typedef struct StreamLoop {
        Perfctl *p;
        uint64_t duration; /* ns; 0: no limit */
        uint64_t interval; /* ns, of tables: events/subscribe-events.h; 0: there are none */
        bool may_lose;     /* what was lost is told, and is no failure */
        bool is_watched;   /* samples are shown as they come: somebody at a terminal is told why there may be none */
        bool has_tables;   /* always print the closing ledger */
        void *userdata;
        /* Nothing more is wanted. NULL: as long as somebody reads the output. */
        bool (*is_full)(const void *userdata);
        /* Does what is due at `now`. When to be called again at the latest: both of CLOCK_MONOTONIC, ns. NULL: nothing ever is. */
        uint64_t (*tick)(void *userdata, uint64_t now);

        bool has_input;
        int input; /* if it has one: a terminal whose keys `tick` reads, which is called when there are some; it ends with that */

        WatchLoss loss; /* counted by the verb */
        RemovedEvents removed; /* so too */
        EventWords words; /* that the stream has; none: all events */
        TypedNames typed; /* what was added for it */
        bool lacks_records; /* side records that choose() has added are not granted */
        uint64_t deadline, next_tick; /* CLOCK_MONOTONIC, ns; 0: no limit; UINT64_MAX: never */
        Command command; /* of p->command */
        perfd_client *keeper; /* of events that are added for as long as it runs, or NULL */
        bool is_keeper_lost;
        TaskEnds tasks;  /* of --pid and --tid */
        bool is_told;    /* by a signal, or by the end of the command or of the last task, that it is enough */
        bool stopping;

        DaemonClock clock; /* of the stream, if the verb has asked for it: for stream_loop_takes() */
        bool has_clock;
        uint64_t until, until_of; /* of that clock: what is later is not wanted; of CLOCK_MONOTONIC, the same; 0: there is no end yet */
        uint64_t signalled; /* CLOCK_MONOTONIC, ns, when the first signal was seen, without a command; 0: there was none */
        uint64_t n_looks, next_look, n_unread; /* next_look: of CLOCK_MONOTONIC, ns */
        bool is_late; /* too long after that signal */
        bool is_orphaned; /* it ends because none of the events is left */
        int code; /* of the end */
} StreamLoop;

/*
 * Subscribes, and runs until the stream has ended; with a command behind "--" that is started then, until this has ended too, and with
 * --pid or --tid until the last of these has; without
 * a command, until none of the events that were named is left.
 * An exit status.
 */
int stream_loop_run(StreamLoop *loop, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    int (*choose)(void *userdata, const EventWords *words, perfd_subscription *subscription));
/*
 * For the verb's callback of items. The library gives all that waits in one call, as much as the queue holds; a verb that needs long for an
 * item, for its names perhaps, would hear of no signal and of no time that is over until it has read all of it, while more comes. So these
 * look, now and then, at what ends the stream.
 */
void stream_loop_look(StreamLoop *loop);
/*
 * The same, and what is due by `tick` is done; before the callback does anything else. Whether the item is wanted: not if it is of a time
 * after --for, or after a signal, or if it had not been read yet a second after that signal.
 */
bool stream_loop_takes(StreamLoop *loop, const perfd_item *item);
/* Times of items can be told from now on: asked of another host before the stream begins, and set when it does. */
void stream_loop_ask_clock(StreamLoop *loop);
void stream_loop_set_clock(StreamLoop *loop, const perfd_start *start);
/* The output is printed; says on stderr what `n` of `what` ("items") there were and what was lost, and judges it. */
void stream_loop_end(StreamLoop *loop, const perfd_end *end, uint64_t n, const char *what);

/* Documents of the kinds start, and end with the closing ledger behind it; `counted` is the name of `n`. */
/* is_of_several: Perfctl.is_of_several */
void put_stream_start(Json *j, const perfd_start *start, bool is_of_several);
void put_wall_reading(Json *j, const perfd_wall_reading *reading);
void put_stream_end(Json *j, const char *counted, uint64_t n, const perfd_end *end);
