/* For the supervisor: events whose samples clients emit (S9). Main thread only. */
#pragma once

#include "daemon/supervisor/supervisor.h"

/* A registration without fds, whose plan is made of spec.fields; spec moves. */
int supervisor_resolve_external(Supervisor *s, uint32_t id, EventSpec *spec, Registration **ret, Explanation *e);

/* The batch pipe of main to the dispatcher, behind those of the readers. */
int emit_pipe_init(EmitPipe *o);
void emit_pipe_deinit(EmitPipe *o);
BatchPipe emit_pipe(EmitPipe *o);
/* What was taken goes to the dispatcher: before a snapshot, a cut, or the end of the window. */
void supervisor_flush_external(Supervisor *s);
/* The cuts of external events, as readers take those of theirs. */
void supervisor_cut_external(Supervisor *s);
/* The merge waits for clients while there are external events, and only then. */
void supervisor_update_window(Supervisor *s);
