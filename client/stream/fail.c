#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "client/stream/stream.h"

int stream_fail(perfd_client *c, int code, const char *what) {
        char text[160];

        if (code == -ENOMEM) {
                c->state = CLIENT_BROKEN; /* items would be missing from here on */
                return client_fail_memory(c);
        }
        (void)snprintf(text, sizeof(text), "packet %" PRIu64 " of the stream: %s", c->stream->sequence, what);
        return client_fail_protocol(c, text);
}
