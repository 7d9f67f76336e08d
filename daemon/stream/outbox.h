/*
 * For the dispatcher: what waits for one subscriber, within a budget of bytes, and what became of everything that was
 * pushed, or placed where the subscriber reads it. Dispatcher thread only.
 *
 *     items pushed + items placed = sent_items + all dropped_items + queued_items, at any time
 *
 * Packets are numbered when they leave: each takes the next number, and so does each that was dropped, in the place
 * where it stood. Dropped ones leave a gap there, which is sent as a packet with a number of its own:
 *
 *     queue    A  B  gap(3 packets)  F         sequence    1  2  6 (gap: 3 to 5)  7
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/stream/gap.h"
#include "daemon/stream/packet.h"
#include "daemon/stream/queue-account.h"
#include "daemon/stream/shared-ring.h"

#define OUTBOX_PACKET_COST ((size_t)192)   /* charged for each packet beside its bytes: what holding it takes */
#define OUTBOX_KEPT_MAX ((size_t)64 << 20) /* bytes of kept packets and of gaps, which the budget does not bound */
/* What each may hold whatever others do: a packet of items. Not in the accounts' `used`: main sets it aside. */
#define OUTBOX_FLOOR (PACKET_SIZE + OUTBOX_PACKET_COST)

enum {
        OUTBOX_E_AGAIN = 1, /* more is left: call again when the socket is writable */
        OUTBOX_E_GONE,      /* the peer closed, or the connection broke */
        OUTBOX_E_OVERFLOW,  /* this stream has to end */
        OUTBOX_E_FULL,      /* more is left: call again when the subscriber says that its ring has room */
        OUTBOX_E_BROKEN,    /* the subscriber broke the rules of its ring */
};

/* What happens to a packet for which there is no room. The same values as perfd.v1.Overflow. */
typedef enum Overflow {
        OVERFLOW_DROP_OLDEST,
        OVERFLOW_DROP_NEWEST,
        OVERFLOW_DISCONNECT,
        _OVERFLOW_MAX,
} Overflow;

typedef struct OutboxEntry OutboxEntry;

/* The accounts that a queue is charged to, beside its own limit. */
enum {
        OUTBOX_ACCOUNT_UID,
        OUTBOX_ACCOUNT_ALL,
        _OUTBOX_ACCOUNT_MAX,
};

typedef struct Outbox {
        size_t limit; /* bytes of packets that may be dropped, OUTBOX_PACKET_COST for each included */
        Overflow overflow;
        bool is_relayed; /* set behind outbox_init(): it is the queue of a client of a relay, which gaps then say */
        OutboxEntry *head, *tail;
        OutboxEntry *oldest; /* the first that can be dropped */
        size_t head_sent;    /* bytes of the head's frame that left already */
        uint64_t next_sequence;
        QueueAccount *accounts[_OUTBOX_ACCOUNT_MAX]; /* NULL: not charged */
        size_t charged;                              /* to each of them */

        /* to be read */
        size_t queued_bytes, kept_bytes, gap_bytes;
        size_t most_bytes; /* that waited at once, ever */
        uint64_t queued_items, sent_items;
        uint64_t dropped_items[_GAP_REASON_MAX];
        uint64_t freed_bytes; /* of packets that waited and were dropped */
} Outbox;

#define OUTBOX_NULL ((Outbox){ .head = NULL })

void outbox_init(Outbox *o, size_t limit, Overflow overflow);
/* Before the first push: what waits is charged to them too, and they outlive it. */
void outbox_set_accounts(Outbox *o, QueueAccount *of_uid, QueueAccount *of_all);
/* Also of one that was never initialised but is zero. */
void outbox_deinit(Outbox *o);

/*
 * Takes a reference. A packet that is kept gets in and drops nothing; another one if it fits into the limit, or if no
 * other of its kind waits: so any limit lets something through, and at most one packet is above it. A packet of which
 * a part was sent is never dropped, and then it may be the new one that is. An account that is used up is as a limit that
 * is reached, above OUTBOX_FLOOR; for packets that are kept others are dropped then.
 *
 * OUTBOX_E_OVERFLOW: with OVERFLOW_DISCONNECT the packet was dropped and is in a gap, so that a last packet may still
 * be pushed and the rest be sent; or OUTBOX_KEPT_MAX or an account's limit is reached, the packet was not taken, and the
 * stream is broken. -ENOMEM.
 */
int outbox_push(Outbox *o, Packet *p);
/*
 * Drops what a packet that is kept needs the room of, as outbox_push() would, which then drops nothing: for the packet that says
 * how much was dropped. OUTBOX_E_OVERFLOW, -ENOMEM.
 */
int outbox_make_room(Outbox *o, const Packet *kept);
/* So much is charged to the accounts for it when the packet was pushed; for what is charged already: 0. */
size_t outbox_growth(const Outbox *o, const Packet *p);
/*
 * Makes it smaller by so many bytes, or as many as can be dropped above OUTBOX_FLOOR, by its policy: the oldest first, or the
 * newest. How many these were, or -ENOMEM.
 */
ssize_t outbox_shed(Outbox *o, size_t bytes);

/*
 * As much as the socket takes without waiting, up to a few megabytes. 0 if nothing is left, OUTBOX_E_AGAIN,
 * OUTBOX_E_GONE, -ENOMEM, or what sendmsg(2) says of a misuse.
 */
int outbox_send(Outbox *o, int fd);
/*
 * The same into memory that is shared: 0 if nothing is left, OUTBOX_E_FULL, OUTBOX_E_AGAIN after a few megabytes, without
 * waiting for anything, OUTBOX_E_BROKEN, -ENOMEM.
 */
int outbox_send_shared(Outbox *o, SharedRing *ring);

/*
 * A packet without a way through the outbox: written where the subscriber reads it. Room for its bytes, `least` or more; NULL:
 * there is none, or something waits, which comes before it, or the stream is over, and drops it. Until it is sent nothing else
 * is pushed, or sent.
 */
uint8_t *outbox_reserve(const Outbox *o, SharedRing *ring, size_t least, size_t *ret_n);
/* It, written there, leaves. */
void outbox_send_reserved(Outbox *o, SharedRing *ring, const Packet *p);

/*
 * A packet in a buffer of the ring's pool leaves by its place. False: it is not, or it is so short that its bytes are cheaper, or
 * something waits; it can be pushed.
 */
bool outbox_send_ref(Outbox *o, SharedRing *ring, const Packet *p);

static inline bool outbox_is_empty(const Outbox *o) {
        return !o->head;
}

/* Items, for whatever reason. */
static inline uint64_t outbox_dropped(const Outbox *o) {
        uint64_t n = 0;

        for (GapReason reason = 0; reason < _GAP_REASON_MAX; reason++)
                n += o->dropped_items[reason];
        return n;
}
