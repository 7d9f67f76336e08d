#include "client/stream/batch.h"

#include <stdlib.h>

Stream *stream_new(void) {
        Stream *s = calloc(1, sizeof(Stream));

        if (!s)
                return NULL;
        s->item.descriptors = &s->descriptors;
        s->item.tasks = &s->tasks;
        return s;
}

void stream_free(Stream *s) {
        if (!s)
                return;
        descriptors_deinit(&s->descriptors);
        tasks_deinit(&s->tasks);
        item_deinit(&s->item);
        free(s->part);
        batch_free(s->batch);
        ring_reader_close(&s->ring);
        pool_reader_close(&s->pool);
        free(s);
}
