/*
 * For the supervisor: main waits for another thread. For the first moment it does nothing else; then others are served, as at a
 * checkpoint, while what waits cannot be cancelled. Patience is counted in slices in which main has run: while all of perfd is
 * stopped, none passes. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/dispatcher/dispatcher.h"
#include "daemon/supervisor/readers/readers.h"

#define LOOK_MOST (200 * NSEC_PER_MSEC) /* a request that only looks waits for readers so long, and is told what was known before */
#define DISPATCHER_STOP_MOST (2 * NSEC_PER_SEC) /* without a move of the dispatcher, when perfd ends */

typedef struct Patience {
        nsec_t began, spent, fed;
} Patience;

Patience patience_new(void);
/* So much was waited, or less, as perfd is to stop. */
bool patience_is_over(const Readers *s, const Patience *p, nsec_t most);
/* Until fd (-1: none) is readable, or a slice is over. 1: it is readable. Negative: what serving others has said. */
int readers_wait_slice(Readers *s, Patience *p, int fd);

/*
 * What the dispatcher is asked. Refused: it does not answer, and from then on until it does all that is asked of it is refused at
 * once. The log says so, and who. -ENOMEM
 */
int readers_report(Readers *s, DispatcherReport *ret, Explanation *e);
/*
 * Whether it answers at all, for who does not wait for that. It is asked, or was asked at the last look, and given a moment; that
 * it does not answer is known when it has not done so for as long as others wait. 0. Negative: -ENOMEM, or what serving others said
 */
int readers_look_at_dispatcher(Readers *s);
void readers_end_look(Readers *s);
/* What cannot be done without it, and neither be refused: waits as long as it takes; until perfd is to stop: -ETIMEDOUT. */
int readers_ask_pipe(Readers *s, DispatcherCommandKind kind, uint32_t slot);
/* What needs the dispatcher is refused while it does not answer. */
int readers_refuse_unanswered(const Readers *s, const char *what, Explanation *e);
/* On DISPATCHER_ANSWERS. */
void readers_on_dispatcher_answers(Readers *s);
