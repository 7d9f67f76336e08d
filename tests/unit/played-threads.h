/*
 * The threads of perfd, played on the one of the test: a reader does what it is told as it is told it, and the dispatcher has a
 * turn behind it, and whenever it is told something. Both are the real ones. A reader that is stopped does nothing, until it goes
 * on; while main waits for it the clock runs as fast as main looks. In the middle of what it does it is stopped in a thread of its
 * own, while which the test's one goes on: never both.
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
/*
 * The same in the n-th of its pauses from now on, in the middle of what it does. It goes on by itself when main has waited for it
 * `waits` times; 0: it does not.
 */
void played_stop_in_pause(uint32_t slot, unsigned n, unsigned waits);
/* How often one did, since played_threads_start(). */
unsigned played_n_stopped(void);
/* In each pause of a reader, and, while one is stopped in the middle, each time that main waits: happens(userdata). NULL: nothing. */
void played_set_happening(void (*happens)(void *userdata), void *userdata);
/* On CLOCK_MONOTONIC. */
void played_let_pass(nsec_t time);
