/* Streams whose packets the caller has: what reads them from a connection is left out, and all else is the same. */
#include "client/request/request.h"
#include "client/stream/batch.h"

int perfd_feed_begin(perfd_client *c, const perfd_callbacks *callbacks, void *userdata) {
        perfd_callbacks own;

        if (c->state != CLIENT_NEW)
                return client_fail(c, PERFD_E_STATE, "state", "this client is connected, or is a stream already");
        if (caller_struct_copy(&own, sizeof(own), callbacks) != 0)
                return client_fail_size(c, "perfd_callbacks");
        c->stream->callbacks = own;
        c->stream->userdata = userdata;
        c->stream->is_fed = true;
        c->state = CLIENT_STREAMING;
        return 0;
}

void stream_lend_batch(perfd_client *c, Batch *batch, void (*on_batch)(void *userdata, const perfd_batch *batch)) {
        batch->client = c;
        batch->missed = c->stream->batch_missed;
        c->stream->batch = batch;
        c->stream->on_batch = on_batch;
}

void stream_give_batch_back(perfd_client *c) {
        c->stream->batch_missed = c->stream->batch->missed;
        c->stream->batch = NULL;
}

static int feed_by_batches(perfd_client *c) {
        Stream *s = c->stream;
        int r = stream_check_batch(c);

        while (r == 0 && s->batch->shown.n > 0) {
                stream_count_batch(s);
                s->on_batch(s->userdata, &s->batch->shown);
                r = stream_fill_batch(c);
                if (r == 0)
                        r = stream_check_batch(c);
        }
        return r;
}

static int feed(perfd_client *c, const void *packet, size_t length) {
        int r = stream_open_packet(c, packet, length, 0);

        if (r == 0)
                r = c->stream->batch ? feed_by_batches(c) : stream_take_items(c);
        return r == 0 ? stream_close_packet(c) : r;
}

int perfd_feed(perfd_client *c, const void *packet, size_t length) {
        int r;

        if (c->state == CLIENT_ENDED)
                return stream_say_end(c);
        if (c->state != CLIENT_STREAMING || !c->stream->is_fed || c->stream->is_busy)
                return client_fail(c, PERFD_E_STATE, "state", "this client is no stream that is fed, or this is one of its callbacks");
        c->stream->is_busy = true;
        r = feed(c, packet, length);
        c->stream->is_busy = false;
        return r == PERFD_E_ENDED ? 0 : r;
}
