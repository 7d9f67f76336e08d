/* Streams by callbacks. */
#include "client/stream/batch.h"

static int fail_state(perfd_client *c) {
        const char *why = c->state == CLIENT_NEW     ? "this client is not connected: perfd_client_connect() and perfd_subscribe() come first"
                          : c->state == CLIENT_READY ? "this connection is no stream yet: perfd_subscribe() makes it one"
                                                     : "this connection is no stream, or is broken";

        return client_fail(c, PERFD_E_STATE, "state", "%s", why);
}

int stream_begin_reading(perfd_client *c) {
        if (c->state == CLIENT_ENDED)
                return stream_say_end(c);
        if (c->state != CLIENT_STREAMING || c->stream->is_fed)
                return fail_state(c);
        if (c->stream->is_busy)
                return client_fail(c, PERFD_E_STATE, "state", "a callback of this stream cannot read on: it has to return first");
        return 0;
}

int stream_say_end(perfd_client *c) {
        return client_fail(c, PERFD_E_ENDED, "ended", "the stream has ended");
}

/* What is left of the packet that is open. Without a callback its items are only counted. */
static int finish(perfd_client *c) {
        int r = stream_take_items(c);

        return r == 0 ? stream_end_message(c) : r;
}

static int process(perfd_client *c) {
        Stream *s = c->stream;
        bool any = s->packet.is_open; /* of a batch */
        int r = 0;

        if (any)
                r = finish(c);
        do {
                if (r == 0)
                        r = stream_next_message(c, &any);
                if (r != 0 || !any)
                        return r;
                s->received += s->batch ? s->batch->shown.n : 0; /* nobody looks at it */
                r = finish(c);
        } while (r == 0);
        return r;
}

int perfd_client_process(perfd_client *c) {
        int r = stream_begin_reading(c);

        if (r != 0)
                return r;
        c->stream->is_busy = true;
        r = process(c);
        c->stream->is_busy = false;
        return r == PERFD_E_ENDED ? stream_say_end(c) : r;
}

int perfd_stream_stop(perfd_client *c) {
        if (c->state == CLIENT_ENDED || (c->state == CLIENT_STREAMING && c->stream->stop_asked))
                return 0;
        if (c->state != CLIENT_STREAMING || c->stream->is_fed)
                return fail_state(c);
        c->stream->stop_asked = c->stream->stop_wanted = true;
        return stream_send(c);
}
