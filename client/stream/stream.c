#include "client/stream/stream.h"

#include <stdlib.h>

Stream *stream_new(void) {
        return calloc(1, sizeof(Stream));
}

void stream_free(Stream *s) {
        if (!s)
                return;
        descriptors_deinit(&s->descriptors);
        tasks_deinit(&s->tasks);
        item_deinit(&s->item);
        ring_reader_close(&s->ring);
        pool_reader_close(&s->pool);
        free(s);
}
