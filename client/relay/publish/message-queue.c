#include "client/relay/publish/message-queue.h"

#include <assert.h>

void message_queue_init(MessageQueue *q) {
        *q = (MessageQueue){ .n = 0 };
        q->end = &q->first;
        q->stored_end = &q->stored;
}

static void messages_free(Message *m) {
        for (Message *next; m; m = next) {
                next = m->next;
                message_free(m);
        }
}

void message_queue_deinit(MessageQueue *q) {
        messages_free(q->first);
        messages_free(q->stored);
        message_queue_init(q);
}

void message_queue_push(MessageQueue *q, Message *m) {
        m->number = ++q->n;
        m->next = NULL;
        *q->end = m;
        q->end = &m->next;
        if (!q->unsent)
                q->unsent = m;
}

void message_queue_rewind(MessageQueue *q) {
        q->unsent = q->first;
        q->n_sent = q->sent = 0;
}

const Message *message_queue_send(MessageQueue *q) {
        Message *m = q->unsent;

        assert(m);
        q->unsent = m->next;
        q->n_sent++;
        q->sent += message_size(m);
        return m;
}

/* An answer to what an earlier connection has sent is as good, so one that is not sent yet can be stored already. */
bool message_queue_store(MessageQueue *q, uint64_t number) {
        Message **place = &q->first, *m;
        bool was_sent = true;

        while (*place && (*place)->number != number) {
                was_sent = was_sent && *place != q->unsent;
                place = &(*place)->next;
        }
        m = *place;
        if (!m)
                return false;
        if (m == q->unsent) {
                q->unsent = m->next;
        } else if (was_sent) {
                q->n_sent--;
                q->sent -= message_size(m);
        }
        *place = m->next;
        if (q->end == &m->next)
                q->end = place;
        m->next = NULL;
        *q->stored_end = m;
        q->stored_end = &m->next;
        return true;
}

void message_queue_refuse(MessageQueue *q) {
        assert(q->unsent);
        q->unsent->is_refused = true;
        (void)message_queue_store(q, q->unsent->number);
}

Message *message_queue_take_stored(MessageQueue *q) {
        Message *stored = q->stored;

        q->stored = NULL;
        q->stored_end = &q->stored;
        return stored;
}
