/*
 * What an expression asks of the process that did it: exe, uid, cgroup, container, unit; and comm, after
 * filter_ask_for_comm(). Readers do not know that, so it is taken apart: conditions that they can answer, comparisons that only the dispatcher can, and the && || ! above these.
 *
 *     prev_prio < 100 && (exe ~ "*ssh*" || uid == 0)     parts  0: prev_prio < 100   1: exe ~ "*ssh*"   2: uid == 0
 *
 * Comparisons of comm with nothing else between them are one part, however many: `comm == "a" || comm == "b"`. Readers know
 * what it comes to of idle threads and of samples that clients emit (Record.is_comm_sure), the dispatcher of all others.
 *
 * An event may have a field of its own that is called so: then the reader answers that part as any other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/route/filter-tree.h"

#define CONDITION_PARTS 32 /* at most: bits of a ConditionWord */

typedef enum ProcessPart {
        PROCESS_NONE,
        PROCESS_UID,
        PROCESS_EXE,
        PROCESS_CGROUP,
        PROCESS_CONTAINER,
        PROCESS_UNIT,
        PROCESS_COMM, /* what every sample has as well, so that it is the process's only where it is asked so */
        _PROCESS_PART_MAX,
} ProcessPart;

/* Also with `sample.` before it. PROCESS_NONE: it is none of them. */
ProcessPart process_part_find(const char *name);
const char *process_part_name(ProcessPart p);

/* A comparison of one of them with a constant, by an operator that both can have. */
typedef struct ProcessAtom {
        ProcessPart part;
        FilterKind relation; /* with the constant on the right */
        const FilterNode *constant;
} ProcessAtom;

/* Whether all that is compared at and below the node is comm, written in one way: the dispatcher has one answer to it. */
bool filter_is_of_comm(const Filter *f, uint16_t node);

/* The relation when its sides are exchanged. */
FilterKind filter_mirror(FilterKind relation);
bool filter_process_atom(const Filter *f, uint16_t node, ProcessAtom *ret);

typedef struct FilterSplit {
        unsigned n;
        struct {
                uint16_t node;
        } parts[CONDITION_PARTS]; /* in the order of their nodes; none contains another */
} FilterSplit;

/* Without an atom there is one part, the whole. REFUSED_INVALID: there are more than CONDITION_PARTS. */
int filter_split(const Filter *f, FilterSplit *ret, Explanation *e);
