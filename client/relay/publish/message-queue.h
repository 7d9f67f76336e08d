/*
 * What is published and not stored yet, in order: those in front were sent on the connection that there is, the others were not. One
 * that is stored leaves it from wherever it is, for the list of those that go back. The caller locks.
 */
#pragma once

#include <stdbool.h>

#include "client/relay/publish/message.h"

typedef struct MessageQueue {
        uint64_t n;             /* messages so far: the number of the last one */
        Message *first, **end;  /* not acknowledged */
        Message *unsent;        /* of these, the first one that this connection has not seen */
        size_t n_sent, sent;    /* messages and bytes before it */
        Message *stored, **stored_end;
} MessageQueue;

/* It points into itself: it stays where it is. */
void message_queue_init(MessageQueue *q);
void message_queue_deinit(MessageQueue *q);
void message_queue_push(MessageQueue *q, Message *m);
/* A new connection: nothing of what was sent counts. */
void message_queue_rewind(MessageQueue *q);
/* The next one counts as sent; it stays in the queue, and is there until it is stored. There is one (`unsent`). */
const Message *message_queue_send(MessageQueue *q);
/* False: no message has this number, or it is stored already. */
bool message_queue_store(MessageQueue *q, uint64_t number);
/* The next one (`unsent`) goes back as it is, with is_refused. */
void message_queue_refuse(MessageQueue *q);
/* All that are stored or refused, in a list, which is the caller's. */
Message *message_queue_take_stored(MessageQueue *q);
