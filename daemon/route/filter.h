/*
 * For the supervisor: a subscriber's filter expression, `prev_comm == "postgres" && flags & O_CREAT`, as an immutable
 * syntax tree. It knows no event yet: one Filter is compiled once for each event that the subscription selects
 * (match.h). perfd-filter(7) is the language. Any thread, but one Filter is not shared between threads.
 *
 *     loosest   ||            conditions
 *               &&
 *               !             of a name, a number, a condition in parentheses, or another !
 *               == != < <= > >= ~    two numbers or two texts; do not chain
 *               |             numbers; below comparisons as in Python, not as in C: flags & 6 == 2 is (flags & 6) == 2
 *     tightest  &
 *
 * What could be read in two ways is refused, never guessed: `!a == b`, `a < b < c`.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

#define FILTER_MAX_TEXT 4096 /* bytes of an expression */
#define FILTER_MAX_TERMS 256 /* names, numbers and texts in it */
#define FILTER_MAX_DEPTH 64  /* ( and ! inside each other */

typedef struct Filter Filter;

/*
 * REFUSED_INVALID with the reason "bad-expression": e->position is 1 + the byte offset of the error, e->text what
 * was found and what was expected. -ENOMEM.
 */
int filter_parse(const char *text, Filter **ret, Explanation *e);
Filter *filter_free(Filter *f);
DEFINE_CLEANUP(Filter *, filter_free)

/*
 * From now on its comparisons of comm with constants are of the process too: of a stream in the order of time, where the
 * dispatcher knows the thread's name at that moment, and readers at best the one that their own CPU has heard of; and of one in
 * the order of each CPU whose predicate the dispatcher has a part in anyway, by the name that this stream says.
 */
void filter_ask_for_comm(Filter *f);

/* Whether it compares what is known of the process: then the dispatcher has a part in it (process-condition.h). */
bool filter_asks_process(const Filter *f);

/* What it takes at most to ask it of a sample of any event, in comparisons of a number: 1 and more. */
size_t filter_cost(const Filter *f);
/* What of that the dispatcher has for each sample that a reader passes on, alone for all CPUs; 0: it decides nothing. */
size_t filter_decision_cost(const Filter *f);

/*
 * The expression in its one normal spelling (ASCII, numbers in decimal, no needless parentheses): expressions with the
 * same spelling mean the same for every event, so that they can share a program. malloc; NULL: no memory. It may be
 * longer than what was parsed, and so longer than FILTER_MAX_TEXT; otherwise it parses to the same Filter.
 */
char *filter_canonical(const Filter *f);
