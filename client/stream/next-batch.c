/* Streams by batches: one is of one packet, which stays open until the next one is asked for. */
#include <errno.h>

#include "client/stream/batch.h"
#include "client/stream/part.h"

static int begin(perfd_client *c) {
        int r = stream_begin_reading(c);
        Stream *s = c->stream;

        if (r != 0)
                return r;
        if (s->callbacks.item)
                return client_fail(c, PERFD_E_STATE, "no-batches",
                                   "this stream has a callback for each item, which perfd_client_process() calls: for batches "
                                   "subscribe without perfd_callbacks.item");
        if (!s->batch)
                s->batch = batch_new(c);
        return s->batch ? 0 : client_fail_memory(c);
}

int stream_check_batch(perfd_client *c) {
        Stream *s = c->stream;
        int error = s->batch->error ? s->batch->error : s->item.state == ITEM_WRONG ? s->item.error : 0;

        s->item.state = ITEM_SET;
        return error ? stream_fail(c, error, WRONG_ITEM) : 0;
}

/* Of the packet that is open: the next of its items; none: it is closed. */
static int go_on(perfd_client *c) {
        Stream *s = c->stream;
        int r = stream_fill_batch(c);

        return r == 0 && s->batch->shown.n == 0 ? stream_end_message(c) : r;
}

static int fill(perfd_client *c) {
        Stream *s = c->stream;
        bool any = true;
        int r = stream_check_batch(c); /* of the batch before */

        batch_begin(s->batch, NULL);
        if (r == 0 && s->packet.is_open)
                r = go_on(c);
        while (r == 0 && any && s->batch->shown.n == 0) {
                r = stream_next_message(c, &any);
                if (r == 0 && any && s->batch->shown.n == 0)
                        r = stream_end_message(c);
        }
        return r == 0 ? stream_check_batch(c) : r;
}

void stream_count_batch(Stream *s) {
        s->received += s->batch->shown.n;
        s->batch->shown.missed = s->batch->shown.n > 0 ? s->missed - s->batch->missed : 0;
        if (s->batch->shown.n > 0)
                s->batch->missed = s->missed;
}

int perfd_stream_next_batch(perfd_client *c, const perfd_batch **ret_batch) {
        int r = begin(c);
        Stream *s = c->stream;

        if (r != 0)
                return r;
        s->is_busy = true;
        r = fill(c);
        s->is_busy = false;
        if (r != 0)
                return r == PERFD_E_ENDED ? stream_say_end(c) : r;
        stream_count_batch(s);
        *ret_batch = &s->batch->shown;
        return 0;
}

const perfd_item *perfd_batch_item(const perfd_batch *batch, const perfd_packed_item *packed) {
        Batch *b = (Batch *)(uintptr_t)batch; /* whose first member it is */
        const uint8_t *field = (const uint8_t *)packed;
        struct perfd_item *item = &b->client->stream->item;
        WireField f = { .key = 0 };
        Wire w = { .at = field, .end = b->end };

        if (b->shown.n == 0 || (uintptr_t)field < (uintptr_t)b->items[0] || (uintptr_t)field >= (uintptr_t)b->end)
                return NULL;
        if (item->state == ITEM_WRONG)
                b->error = item->error;
        if (!wire_next(&w, &f) || f.key != ITEMS_KEY) {
                f.bytes = w.at = field; /* it was one before: the daemon writes where it must not */
                b->error = PERFD_E_PROTOCOL;
        }
        item_set(item, f.bytes, w.at);
        return item;
}
