/*
 * The threads of perfd, played on the one of the test: a reader does what it is told as it is told it, and the dispatcher has a
 * turn behind it, and whenever it is told something. Both are the real ones. A reader that is stopped does nothing, until it goes
 * on; while main waits for it the clock runs as fast as main looks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/dispatcher/dispatcher.h"
#include "daemon/reader/reader.h"

/* None is stopped, and nobody knows the dispatcher. */
void played_threads_start(Dispatcher *d);
/* One cycle. Whether there was something to do. */
bool played_run_dispatcher(void);
/* What is in its ring, as at its next tick. */
void played_run_reader(Reader *r);
/* Before it does the n-th of what it is told from now on. */
void played_stop_reader(uint32_t slot, unsigned n);
bool played_has_stopped(uint32_t slot);
/* It does what it was told last. */
void played_continue_reader(Reader *r);
/* On CLOCK_MONOTONIC. */
void played_let_pass(nsec_t time);
