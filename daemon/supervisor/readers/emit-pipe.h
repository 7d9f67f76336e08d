/* For the supervisor: its own way to the dispatcher, for what clients emit, as a reader has it. Main thread only. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/dispatcher/dispatcher.h"

typedef struct Readers Readers;

#define EMIT_BATCHES 64

enum {
        EMIT_E_LOST = 1, /* the dispatcher has all batches */
};

typedef struct EmitPipe {
        Queue full, free;
        atomic_bool needs_batch; /* never: main does not wait for batches */
        Batch *batch;         /* being filled, or NULL */
        size_t n_batches;
        uint64_t cut;  /* number of the last one: Batch.cut */
        sd_event_source *hold; /* when it is sent, be it full or not; NULL: it never was held */
        bool is_held;
} EmitPipe;

int emit_pipe_init(EmitPipe *o);
void emit_pipe_deinit(EmitPipe *o);
/* Behind those of the readers. */
BatchPipe emit_pipe(EmitPipe *o);
/* Batches that the dispatcher has not given back. */
size_t emit_pipe_n_away(const EmitPipe *o);
/* There is a batch that is being filled. EMIT_E_LOST, -ENOMEM */
int readers_need_emit_batch(Readers *s);
/* After a request: what it has emitted goes, soon if not now. */
int readers_send_emitted(Readers *s);
/* What was taken goes to the dispatcher: before a snapshot, a cut, or the end of the window. */
void readers_flush_emitted(Readers *s);
/* What comes from now on is behind the last cut. */
void readers_cut_emitted(Readers *s);
