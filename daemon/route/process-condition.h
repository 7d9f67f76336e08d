/*
 * For the dispatcher: what of a condition only it can decide, because whose process a sample is is known where notes of all
 * CPUs have come together in the order of time. Made by the supervisor, then of one stream order's thread alone, whose texts
 * it remembers: texts of one TextTable only.
 *
 * A comparison with what is not known is false, whichever it is, as one with a field that a sample does not have. A name that is
 * not known is empty.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/model/batch.h"
#include "daemon/model/task-table.h"
#include "daemon/route/filter.h"

typedef struct ProcessCondition ProcessCondition;

/* REFUSED_INVALID "bad-expression" with e->position: it has too many parts. -ENOMEM */
int process_condition_new(const Filter *f, ProcessCondition **ret, Explanation *e);
ProcessCondition *process_condition_free(ProcessCondition *c);
DEFINE_CLEANUP(ProcessCondition *, process_condition_free)

/* The bytes that it takes in memory. */
size_t process_condition_size(const ProcessCondition *c);

/* `word` is what a reader said of the sample; task NULL: nothing is known of whose it was. */
bool process_condition_holds(ProcessCondition *c, const ConditionWord *word, const Task *task);
