/*
 * The dispatcher: takes batches from all readers, orders them, and gives every subscriber what is his. It owns the
 * subscribers and their sockets; main speaks with it by mails only, and it never waits for main or for a peer. It has a
 * thread; while that sleeps a reader may run its cycles.
 */
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/heartbeat.h"
#include "daemon/base/log.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/host/idle-cpus.h"
#include "daemon/model/batch.h"
#include "daemon/model/counters.h"
#include "daemon/model/dispatching.h"
#include "daemon/model/batch-pipe.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/task-table.h"
#include "daemon/route/merge.h"
#include "daemon/route/process-condition.h"
#include "daemon/stream/outbox.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

#define SUBSCRIBER_PEER_SIZE 64
#define DISPATCHER_NOT_WAITED_FOR UINT64_MAX /* the watermark of a batch pipe that the merge does not wait for */

typedef enum StreamOrder {
        STREAM_BY_TIME,
        STREAM_BY_CPU,
        _STREAM_ORDER_MAX,
} StreamOrder;

typedef struct Channel Channel;

/* One stream to one peer. Made by main, the dispatcher's from SUBSCRIBE to GONE. */
typedef struct Subscriber {
        /* set by main */
        uint64_t id;
        int fd;
        char peer[SUBSCRIBER_PEER_SIZE];
        LogCause cause; /* the peer */
        uint32_t number; /* of its subscription: a group and a bit of BatchEntry.mask */
        StreamOrder order;
        uint64_t since; /* first snapshot generation whose masks have the number for this subscription */
        uint64_t from;  /* the cut at which it begins: what is before it is not its own. 0: there is nothing of that any more */
        Overflow overflow;
        size_t queue_bytes;
        ProcessCondition *condition; /* that decides which samples it gets; moves to its channel. NULL: readers decide that alone */
        QueueAccount *account; /* of its uid; main's, as long as this lives */
        SharedRing *ring; /* the way of all packets; NULL: the socket */
        uint8_t *handshake; /* frames that leave before the first packet, by the socket, malloc */
        size_t n_handshake;
        Packet **packets; /* that begin the stream: start, descriptors; references */
        size_t n_packets;

        /* the dispatcher's */
        struct Subscriber *next; /* in its channel */
        Channel *channel;
        Outbox outbox;
        FrameReader in;
        sd_event_source *source;
        size_t handshake_sent;
        bool wakeup_pending;   /* it sleeps beside a ring that is not empty: until the cycle ends, or the kernel has memory to wake it */
        uint64_t matched; /* as counted by the readers */
        uint64_t filtered; /* of these, what its condition has kept from it since */
        uint64_t late;
        uint64_t began;   /* the cut at which it begins, for as long as it lives */
        bool held;        /* nothing is sent yet */
        bool close_asked; /* main knows that a closing ledger is wanted */
        uint64_t foreign; /* of Channel.pending, what is not its own */
        uint64_t until;  /* the cut at which it ends: what is behind it is not its own. UINT64_MAX: it goes on */
        bool closing;    /* ends when the merge has released everything up to `until` */
        bool ended;      /* the last packet is in the outbox: nothing more is pushed, or counted */
        bool is_draining;    /* all has left, and what it may still be reading is kept until it closes */
        nsec_t close_at; /* when the closing ledger was made */
        const char *close_reason;
        uint8_t *closing_ledger; /* packed perfd.v1.Ledger without our own row, malloc */
        size_t n_closing_ledger;
} Subscriber;

/* Frees what main made, for one that was never given away, and for the dispatcher's end of it. */
Subscriber *subscriber_free(Subscriber *s);
DEFINE_CLEANUP(Subscriber *, subscriber_free)

/* All subscribers of one subscription in one order: they share packets. */
struct Channel {
        Channel *next, *before;
        Channel *next_unflushed; /* while it is one */
        Channel *next_owing;
        bool is_unflushed, is_owing; /* is in Dispatcher.unflushed, .owing */
        uint32_t number;
        StreamOrder order;
        uint64_t since;
        const uint64_t *side; /* Dispatcher.side of its order */
        Packet *tasks; /* who is named by `open`, being filled: leaves before it */
        Packet *open;  /* being filled; perhaps where its subscribers read it: none is when a cycle is over */
        Subscriber *subscribers;
        ProcessCondition *condition; /* of its subscription; or NULL */
        uint64_t pending; /* dispatcher_count_pending() */
};

/* Whether items of batches that have this cut are its own. */
static inline bool subscriber_gets(const Subscriber *s, uint64_t cut) {
        return !s->ended && s->from <= cut && cut < s->until;
}

/* Channels for which masks of one generation speak, until a channel comes or goes. */
typedef struct LiveBits {
        uint64_t generation, n_changes, bits;
} LiveBits;

/* The channels of one order whose subscriptions are of one group. */
typedef struct ChannelGroup {
        Channel *by_bit[BATCH_BITS];
        uint64_t bits; /* that have a channel */
        LiveBits live; /* of the batch before */
} ChannelGroup;

/*
 * The first four come before every batch that was pushed after they were posted, the others follow everything that was
 * pushed before they were posted.
 */
typedef enum DispatcherCommandKind {
        DISPATCHER_SUBSCRIBE, /* subscriber: held, so that it collects but hears nothing yet */
        DISPATCHER_DESCRIBE,  /* bytes: fields of perfd.v1.Packet for the subscribers of `number` */
        DISPATCHER_LEARN,     /* scan: the tasks that are there */
        DISPATCHER_CUT,       /* the subscriber `id` (0: all) ends at `cut`, which is about to be taken */
        DISPATCHER_BEGIN,     /* the subscriber `id` hears: the readers know what it wants */
        DISPATCHER_REMOVED,   /* as DESCRIBE, for when everything older than `at` was released */
        DISPATCHER_REPORT,    /* fills *report, posts done */
        DISPATCHER_SHED,      /* queues hold more than they may by now */
        DISPATCHER_CLOSE,     /* the subscriber `id`, behind CUT, with reason, closing ledger in bytes, `at` */
        DISPATCHER_CLOSE_ALL, /* nobody is waited for any more, but for the last packets of those that are closed */
        DISPATCHER_PIPE_ON,   /* the CPU `slot` has a reader, and nothing of it is older than `at`; posts done */
        DISPATCHER_PIPE_OFF,  /* its reader has ended; posts done */
        DISPATCHER_PIPE_STALLED, /* its reader does not answer: what it pushes is taken, but not waited for, and it misses cuts */
        DISPATCHER_PIPE_CUT,  /* it is on again, and what comes from it is behind the last cut */
        DISPATCHER_SPEAK,     /* nothing, but that it answers; posts done */
        DISPATCHER_QUIT,      /* the thread ends */
} DispatcherCommandKind;

typedef struct DispatcherAsk DispatcherAsk;

typedef struct DispatcherCommand {
        DispatcherCommandKind kind;
        Subscriber *subscriber;
        TaskScan *scan; /* moves */
        uint32_t number;
        uint64_t id;
        uint8_t *bytes; /* malloc, moves */
        size_t n_bytes;
        const char *reason; /* static */
        nsec_t at;
        uint64_t cut; /* DESCRIBE, REMOVED: the last one, for those who began there or before */
        uint32_t slot;
        struct DispatcherCommand *next; /* waiting */
        struct DispatcherReport *report;
        sem_t *done;
        DispatcherAsk *ask; /* NULL, or where these two are: it is held by the mail */
} DispatcherCommand;

/* Those that wait, in the order in which they came. */
typedef struct DispatcherMails {
        DispatcherCommand *first;
        DispatcherCommand *last; /* while there are some */
} DispatcherMails;

#define DISPATCHER_MAILS_NULL ((DispatcherMails){ .first = NULL })

static inline void dispatcher_mails_append(DispatcherMails *list, DispatcherCommand *mail) {
        mail->next = NULL;
        if (list->first)
                list->last->next = mail;
        else
                list->first = mail;
        list->last = mail;
}

/* Behind those that are not later. */
static inline void dispatcher_mails_insert(DispatcherMails *list, DispatcherCommand *mail) {
        DispatcherCommand **p = &list->first;

        if (!list->first || list->last->at <= mail->at) {
                dispatcher_mails_append(list, mail);
                return;
        }
        while ((*p)->at <= mail->at)
                p = &(*p)->next;
        mail->next = *p;
        *p = mail;
}

/* NULL: there is none. */
static inline DispatcherCommand *dispatcher_mails_pop(DispatcherMails *list) {
        DispatcherCommand *mail = list->first;

        if (mail)
                list->first = mail->next;
        return mail;
}

typedef struct SubscriberRow {
        uint64_t id, matched, sent, queued, dropped[_GAP_REASON_MAX], late;
        char peer[SUBSCRIBER_PEER_SIZE];
        StreamOrder order;
        bool balanced;
} SubscriberRow;

/* How a CPU is heard of. Times are of CLOCK_MONOTONIC, watermarks are not. */
typedef struct PipeProgress {
        bool is_asked;      /* a watermark is on its way */
        bool is_told;       /* main knows that it has been for long */
        bool is_behind;     /* it has missed cuts: what comes may be from before any of them */
        uint8_t n_silent;   /* looks at a batch pipe that was asked, SILENT_LOOK apart and more */
        nsec_t silent_at;   /* the last of them, or when it was asked */
        uint8_t along;      /* ticks for which it went along when it was asked last; halved when it is seen to be idle */
        nsec_t asked_at;    /* when last */
        nsec_t seen;        /* the last watermark that was not said but seen */
        nsec_t put_off_for; /* the watermark behind which it is not asked before it was looked at again, */
        nsec_t put_off_to;  /* then */
} PipeProgress;

/* Samples that came too late for every stream that wanted them, each once. */
typedef struct LateRow {
        uint32_t event, slot;
        uint64_t count;
        uint64_t before_cut; /* of these, who came to the reader before this cut: */
        uint64_t cut;        /* the last one that any of them came behind */
        bool is_open;        /* the last one may still turn out to have been sent, if more items of it come */
} LateRow;

/* It has answered, or nobody is there any more. */
static inline void hearing_answered(PipeProgress *h) {
        h->is_asked = h->is_told = false;
}

/* One of rows that are in the order of event and slot, as those of a report; NULL: there is none. */
LateRow *late_rows_find(LateRow *rows, size_t n, uint32_t event, uint32_t slot);

typedef struct DispatcherReport {
        SubscriberRow *subscribers; /* malloc */
        size_t n_subscribers;
        LateRow *late; /* malloc */
        size_t n_late;
} DispatcherReport;

void dispatcher_report_deinit(DispatcherReport *r);

/* A row as its message, which borrows the row, `counts` and `dropped` (N_SUBSCRIBER_DROPS each). */
void subscriber_row_fill(const SubscriberRow *from, Perfd__V1__SubscriberLedger *ret, Perfd__V1__Count *counts,
                         Perfd__V1__Count **dropped);
#define N_SUBSCRIBER_DROPS (_GAP_REASON_MAX + 1) /* reasons: those of gaps, late */

/* To main. */
typedef enum DispatcherNoticeKind {
        DISPATCHER_WANTS_CLOSE, /* for `reason`: main is to post CLOSE with the closing ledger */
        DISPATCHER_GONE,        /* the subscriber is no more */
        DISPATCHER_QUEUES_GREW, /* of all; none is on its way while queues_told says so */
        DISPATCHER_PIPE_SILENT, /* `slot`, which was asked `at`, does not answer; once for each time that it is asked, one at a time */
        DISPATCHER_ANSWERS,     /* what main has asked and did not wait for */
        DISPATCHER_HAS_ROOM,    /* for mails: main has some that it could not post */
} DispatcherNoticeKind;

typedef struct DispatcherNotice {
        DispatcherNoticeKind kind;
        uint64_t id;
        uint32_t number;
        const char *reason; /* static */
        uint32_t slot;
        nsec_t at; /* CLOCK_MONOTONIC */
} DispatcherNotice;

typedef struct Dispatcher {
        /* set by main before the thread starts */
        Thread thread;
        BatchPipe *pipes; /* by slot of the CPU */
        uint32_t n_pipes;
        clockid_t clock;
        ThreadPriority priority;
        const uint32_t *cpus; /* that it may run on, borrowed; none: wherever main may */
        size_t n_cpus;
        LossBell *losses; /* borrowed; NULL: nobody says what came too late */
        IdleCpus *idle; /* borrowed; NULL: only who runs on a CPU can say that it is quiet */
        bool *live;      /* by slot: the batch pipe has somebody at its other end; the thread's own afterwards */

        /* between threads */
        Mailbox mailbox; /* mails from main */
        Mailbox words;   /* to main */
        Dispatching dispatching;
        Heartbeat heartbeat;
        Counter wakeups, items;
        /* relaxed: each stands alone, and who sees an older value acts on it a moment later; queues_told has fences at its uses */
        _Atomic(nsec_t) released_until; /* what is older comes too late for streams in the order of time */
        _Atomic(nsec_t) tick; /* of readers, the shortest of all; written by main: a CPU is not asked more often */
        _Atomic(nsec_t) window; /* how long samples of clients are waited for; written by main, 0 without such events */
        Counter n_late_samples; /* of all that LateRow counts */
        Counter tasks_forgotten; /* that had not ended: TASKS_MAX of them are there */
        QueueAccount queues;     /* of all subscribers */
        atomic_bool queues_told; /* that they grew; main clears it before it looks */
        atomic_bool silent_told; /* PIPE_SILENT, of whichever: acquired by who says it, released by main when it has it */

        atomic_bool wants_room; /* main: HAS_ROOM is to be said; a fence between it and the queue of mails on both sides */

        /* main's */
        DispatcherMails unposted; /* behind those in the mailbox */
        bool expects_room;        /* HAS_ROOM is on its way, or will be */

        /* the holder's of dispatching.lock */
        sd_event *event;
        bool quit;
        bool is_closing_all; /* no buffer is written any more: whoever has ended need not have read them */
        bool in_cycle;
        Channel *owing; /* for what comes in a cycle their subscribers in shared memory are woken at its end */
        SharedTick tick_told; /* what they are told in this cycle */
        Channel *channels;
        Channel *unflushed; /* those that a flush has something to do for */
        ChannelGroup groups[_STREAM_ORDER_MAX][BATCH_GROUPS];
        size_t n_channels[_STREAM_ORDER_MAX];
        uint64_t n_channel_changes;
        DispatcherMails following; /* read, and still to be followed */
        PacketPool packets;
        size_t queues_mark; /* above it, main hears of how much queues hold */
        uint64_t freed_bytes; /* by packets that were dropped, since free memory was last given back */
        Merge merge;
        bool confirms_cgroups, reads_proc; /* before dispatcher_init(): moves are not told, in a pid namespace; /proc is of that */
        const char *cgroups; /* where they are mounted, main's; or NULL */
        TaskTable tasks[_STREAM_ORDER_MAX]; /* as of the last item of this order */
        nsec_t *watermarks;  /* by slot */
        PipeProgress *progress;   /* by slot */
        nsec_t released;     /* no time-ordered item older than that will be delivered */
        nsec_t unwindowed;   /* up to here clients are not waited for: dispatcher_unblock() */
        uint32_t here;       /* slot of the CPU on which this cycle looked; n_pipes: it has none */
        nsec_t released_then; /* `released` when the batch pipes were last told to go along */
        nsec_t waiting_since; /* CLOCK_MONOTONIC: the merge waits for some CPU; 0: it does not */
        LateRow *late;
        size_t n_late;
        unsigned n_closing;
        uint64_t side[_STREAM_ORDER_MAX]; /* cut of the batches whose items are in open packets, while there are edges */
        unsigned n_edges; /* beginnings and ends of streams between which and the merge some batch may lie */
        unsigned n_behind; /* batch pipes that are */
        DispatcherMails removals; /* REMOVED, waiting for the merge, in the order of `at` */
} Dispatcher;

/* Main. Batch pipes are the caller's, filled before start; max_subscribers bounds the words on their way. -ENOMEM, errno. */
int dispatcher_init(Dispatcher *d, BatchPipe *pipes, uint32_t n_pipes, size_t max_subscribers);
/* Main, before start: a batch pipe that nobody serves yet, or one that the merge does not wait for. All are served and waited for. */
void dispatcher_set_pipe(Dispatcher *d, uint32_t slot, bool live, bool waited_for);
int dispatcher_start(Dispatcher *d);
int dispatcher_join(Dispatcher *d);
/* False: it has not ended. */
bool dispatcher_join_within(Dispatcher *d, nsec_t most);
void dispatcher_deinit(Dispatcher *d);
/* Main. The mail moves. While thousands are on their way this waits for a while, and then keeps it. */
void dispatcher_post(Dispatcher *d, DispatcherCommand *mail);
/* Main, on HAS_ROOM: posts what was kept. */
void dispatcher_post_rest(Dispatcher *d);

/* By the holder of dispatching.lock, one file each: */

/* dispatcher/cycle.c: what there is to be done now. Negative: fatal. */
int dispatcher_run_cycle(Dispatcher *d, bool is_assist);
/* The same on a reader's thread, whose CPU is anything but quiet: Dispatching.work. */
int dispatcher_assist(void *userdata, nsec_t *ret_wait);
bool dispatcher_has_work(const Dispatcher *d);
/* Takes everything that was in the queues when this was called: as much as fits in them, because readers go on. */
int dispatcher_empty_queues(Dispatcher *d);

/* dispatcher/wait.c: what the CPU says on which this runs, if it is quiet, and then others. Before a release. */
void dispatcher_look_here(Dispatcher *d);
void dispatcher_look_around(Dispatcher *d);
/* Those that others wait for are asked. For how long to sleep. */
nsec_t dispatcher_ask(Dispatcher *d);

/* dispatcher/release.c: what a batch holds, to the channels. Negative: memory. */
int dispatcher_take_batch(Dispatcher *d, Batch *b);
int dispatcher_release(Dispatcher *d);
/* dispatcher/late.c: an entry that is no note, older than what was released. -ENOMEM */
int dispatcher_count_late(Dispatcher *d, const Batch *b, const BatchEntry *e);
/* Into the report, of what came to the readers before a cut. -ENOMEM */
int dispatcher_report_late(const Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* When nothing could be released for a while. */
void dispatcher_unblock(Dispatcher *d);
nsec_t dispatcher_min_watermark(const Dispatcher *d);

/* Bits of channels of this order and group for which masks of the batch's generation already speak. */
uint64_t dispatcher_find_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation);

static inline uint64_t dispatcher_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation) {
        const LiveBits *known = &d->groups[order][group].live;

        return known->generation == generation && known->n_changes == d->n_channel_changes ?
                       known->bits : dispatcher_find_live_bits(d, order, group, generation);
}

/*
 * dispatcher/append.c: n entries of a batch, to the packets of the channels of this order. Notes between them are followed in
 * the tables of `noted`, a bit for each order.
 */
int dispatcher_append(Dispatcher *d, StreamOrder order, unsigned noted, const Batch *b, const BatchEntry *e, size_t n);
/*
 * dispatcher/pass.c: pieces of one entry each, in order, of batches whose masks are all of group 0 and speak for these bits, as
 * long as they go where nothing has to be done before: how many went.
 */
unsigned dispatcher_pass_pieces(Dispatcher *d, StreamOrder order, uint64_t bits, const MergePiece *pieces, unsigned n);
/* Sends what is in open packets, and ends channels whose last subscriber left. */
int dispatcher_flush(Dispatcher *d);
/* The next flush has something to do for it. */
static inline void dispatcher_note_unflushed(Dispatcher *d, Channel *c) {
        if (c->is_unflushed)
                return;
        c->is_unflushed = true;
        c->next_unflushed = d->unflushed;
        d->unflushed = c;
}
int channel_flush(Dispatcher *d, Channel *c);
/* dispatcher/zero-copy.c: a packet in the memory of the channel's only subscriber, for `least` bytes; NULL: not here, or not now. */
Packet *channel_reserve(const Channel *c, size_t least);
/* Several subscribers will read it where it lies. NULL: they cannot, or no buffer is free. */
Packet *channel_new_buffered(const Dispatcher *d, const Channel *c);
/* 1: it was told where such a packet lies, and may be gone. 0: it was not, and is to get a copy. Or what the system says. */
int subscriber_send_ref(Dispatcher *d, Subscriber *s, const Packet *p);
/* It leaves; the subscriber may be gone afterwards. Negative: memory. */
int channel_send_reserved(Dispatcher *d, Channel *c, Packet *p);

/* dispatcher/condition.c: takes those channels of this order out of the masks of n conditional entries whose conditions do not hold. */
int dispatcher_decide(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e, size_t n);
/* dispatcher/tasks.c: who did what items say. */
int dispatcher_init_tasks(Dispatcher *d);
void dispatcher_deinit_tasks(Dispatcher *d);
/* What a note in a batch says, for streams of this order. */
int dispatcher_note(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e);
int dispatcher_learn(Dispatcher *d, const TaskScan *scan);
/* Describes the thread, if it is known, to those of these channels that do not have it as it is now, before an item of it. */
int dispatcher_confirm_cgroup(Dispatcher *d, StreamOrder order, Task *task); /* or NULL; before it is described or judged. -ENOMEM */
int dispatcher_name(Dispatcher *d, StreamOrder order, uint32_t group, uint32_t tid, uint64_t bits);
/* After a flush: what is too much is forgotten. */
int dispatcher_prune_tasks(Dispatcher *d);

/* dispatcher/subscriber.c: streams begin, go on, end. */
int dispatcher_subscribe(Dispatcher *d, Subscriber *s);
int dispatcher_begin(Dispatcher *d, uint64_t id);
/* As all that sends something else than items: after a flush. */
int dispatcher_describe(Dispatcher *d, const DispatcherCommand *mail);
int dispatcher_tell_removals(Dispatcher *d);
void dispatcher_mail_free(DispatcherCommand *mail);
int dispatcher_close(Dispatcher *d, const DispatcherCommand *mail);
int dispatcher_end_closing(Dispatcher *d);
int dispatcher_report(Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* NULL: nobody has subscribed to it in this order. */
static inline Channel *dispatcher_channel(const Dispatcher *d, StreamOrder order, uint32_t number) {
        return d->groups[order][BATCH_GROUP(number)].by_bit[number % BATCH_BITS];
}
/* dispatcher/close.c: Channel.pending of all, entries that wait in the merge and will reach the channel's subscribers. */
void dispatcher_count_pending(Dispatcher *d);
int dispatcher_close_all(Dispatcher *d);
/*
 * dispatcher/edge.c: streams begin and end at cuts. Subscribers of a channel share packets, so while some batches are not for
 * all of them no packet has items of both sides: before items of batches that have this cut go to channels of an order.
 */
int dispatcher_set_side(Dispatcher *d, StreamOrder order, uint64_t cut);
void dispatcher_cut(Dispatcher *d, uint64_t id, uint64_t cut);
void dispatcher_set_behind(Dispatcher *d, uint32_t slot, bool is_behind);
/* At the end of a cycle: beginnings that nothing lies before any more. */
void dispatcher_pass_beginnings(Dispatcher *d);
/* It is about to end, or gone. */
void subscriber_forget_edges(Dispatcher *d, const Subscriber *s);
int subscriber_push(Dispatcher *d, Subscriber *s, Packet *p);
void subscriber_drop(Dispatcher *d, Subscriber *s, const char *why);

/* Once: main answers with the closing ledger. */
int subscriber_ask_close(Dispatcher *d, Subscriber *s, const char *reason);

/*
 * dispatcher/memory.c: what all queues hold together. Before a push: where an account is used up by others who hold more, they
 * drop some. -ENOMEM.
 */
int dispatcher_make_room(Dispatcher *d, const Subscriber *s, const Packet *p);
/* Their limits were lowered. Subscribers may be gone afterwards. -ENOMEM */
int dispatcher_shed(Dispatcher *d);
/* Packets that waited were dropped: so many bytes are free in small pieces. */
void dispatcher_note_freed(Dispatcher *d, uint64_t bytes);
/* Main hears of it when they hold much more than when it heard last. -ENOMEM */
int dispatcher_tell_growth(Dispatcher *d);
int dispatcher_say(Dispatcher *d, DispatcherNoticeKind kind, const Subscriber *s, const char *reason);
int dispatcher_say_silent(Dispatcher *d, uint32_t slot, nsec_t asked_at);

/* dispatcher/send.c. Subscribers may be gone afterwards. Negative: memory. */
int subscriber_send(Dispatcher *d, Subscriber *s);
/* Wakes those for whom there is something in shared memory. */
int dispatcher_end_cycle(Dispatcher *d);
/* It says that its ring has room. */
int subscriber_hear_of_room(Dispatcher *d, Subscriber *s);
