/*
 * Main is the reader of what clients emit. It matches and encodes like one, into batches of a pipe of its own, whose samples
 * the dispatcher merges by time. Nobody waits for that pipe: what comes later than the merge is counted as late.
 */
#include "daemon/supervisor/readers/emit-pipe.h"

#include <assert.h>

#include "daemon/supervisor/readers/readers.h"


#define PROMPT_BATCHES ((size_t)8) /* away, from which on requests share the next one */
#define HOLD_USEC UINT64_C(1000)

int emit_pipe_init(EmitPipe *o) {
        int r = queue_init(&o->full, EMIT_BATCHES);

        return r < 0 ? r : queue_init(&o->free, EMIT_BATCHES);
}

void emit_pipe_deinit(EmitPipe *o) {
        Batch *b;

        while (o->full.slots && (b = queue_pop(&o->full)))
                batch_free(b);
        while (o->free.slots && (b = queue_pop(&o->free)))
                batch_free(b);
        o->batch = batch_free(o->batch);
        o->hold = sd_event_source_disable_unref(o->hold);
        queue_deinit(&o->full);
        queue_deinit(&o->free);
}

BatchPipe emit_pipe(EmitPipe *o) {
        return (BatchPipe){ .full = &o->full, .free = &o->free, .needs_batch = &o->needs_batch, .reader = NULL };
}

size_t emit_pipe_n_away(const EmitPipe *o) {
        return o->n_batches - queue_count(&o->free) - (o->batch != NULL);
}

void readers_flush_emitted(Readers *s) {
        Batch *b = s->emit_pipe.batch;
        bool pushed;

        if (!b || b->n_entries == 0)
                return;
        s->emit_pipe.batch = NULL;
        b->cut = s->emit_pipe.cut;
        batch_seal(b);
        pushed = queue_push(&s->emit_pipe.full, b);
        assert(pushed); /* as many slots as batches */
        doorbell_ring(&s->dispatcher.dispatching.bell);
}

static int on_held_enough(sd_event_source *source, uint64_t usec, void *userdata) {
        Readers *s = userdata;

        s->emit_pipe.is_held = false;
        readers_flush_emitted(s);
        return 0;
}

/*
 * After a request. Its samples leave at once while few batches are away. Otherwise they wait for those of the next requests,
 * the longer the fewer batches are left: so no number of requests can use them up, only a number of bytes.
 */
int readers_send_emitted(Readers *s) {
        EmitPipe *o = &s->emit_pipe;
        size_t away = emit_pipe_n_away(o);
        uint64_t usec;
        int r;

        if (away < PROMPT_BATCHES) {
                readers_flush_emitted(s);
                return 0;
        }
        if (!o->batch || o->batch->n_entries == 0 || o->is_held)
                return 0;
        usec = HOLD_USEC << (away / PROMPT_BATCHES - 1);
        if (!o->hold) {
                r = error_origin(sd_event_add_time_relative(s->operations->event, &o->hold, CLOCK_MONOTONIC, usec,
                                                            HOLD_USEC / 4, on_held_enough, s));
                if (r >= 0)
                        r = error_origin(sd_event_source_set_exit_on_failure(o->hold, true));
        } else {
                r = error_origin(sd_event_source_set_time_relative(o->hold, usec));
                if (r >= 0)
                        r = error_origin(sd_event_source_set_enabled(o->hold, SD_EVENT_ONESHOT));
        }
        o->is_held = r >= 0;
        return r < 0 ? r : 0;
}

/* Batches are made as they are needed and used again. */
int readers_need_emit_batch(Readers *s) {
        EmitPipe *o = &s->emit_pipe;

        if (o->batch && o->batch->n_entries > 0)
                return 0;
        if (!o->batch)
                o->batch = queue_pop(&o->free);
        if (!o->batch) {
                if (o->n_batches == EMIT_BATCHES)
                        return EMIT_E_LOST;
                if (!(o->batch = batch_new((uint32_t)s->n_cpus)))
                        return error_origin(-ENOMEM);
                o->n_batches++;
        }
        batch_reset(o->batch, s->generation);
        return 0;
}

void readers_cut_emitted(Readers *s) {
        readers_flush_emitted(s); /* what is delivered is on its way */
        s->emit_pipe.cut = s->n_cuts;
}
