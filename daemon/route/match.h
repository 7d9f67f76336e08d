/*
 * A Filter, compiled for one event. Compiled on the supervisor thread, run by the readers on each sample: no
 * allocation, no system call, a bounded number of steps.
 *
 * Names, in this order: the event's own fields; `sample.NAME`, and NAME if the event has no such field, of what each
 * sample has: pid, tid, cpu, comm, time (and ip, addr, period where there is no Plan); the same of its process: exe, uid,
 * cgroup, container, unit, and the event's own name, event, which are compared with constants only; then, the value names of the
 * nearest field in the same comparison that has such, to the left before to the right.
 *
 * Numbers are compared as the integers that they are, whatever their widths and signs. A comparison whose element or
 * dynamic field lies outside the record's raw bytes, or of a text that a probe could not read, is false, whichever comparison it is.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/model/batch.h"
#include "daemon/model/plan.h"
#include "daemon/model/record.h"
#include "daemon/route/filter.h"

typedef struct MatchProgram MatchProgram; /* immutable, shared between threads by reference count */

/*
 * `plan` NULL: an event without fields of its own; event: its name, or NULL; they need not outlive the call. *ret has one reference.
 * REFUSED_NOT_FOUND, "unknown-field": the event has no such field, the field no such value name.
 * REFUSED_INVALID, "bad-expression": it has, but a text is compared with a number, an array is not indexed ...
 * Both with e->position. -ENOMEM.
 */
int filter_compile(const Filter *f, const Plan *plan, const char *event, MatchProgram **ret, Explanation *e);
typedef struct FilterSubject {
        const Plan *plan;  /* as of filter_compile() */
        const char *event;
        uint32_t n_cpus;   /* a sample's CPU is one of these; 0: of any */
} FilterSubject;
/*
 * Comparisons with a constant that no sample of any of these events can fulfil, as the field is narrower, the text longer than its
 * place, or the CPU none of the host's. Events that the filter does not fit are left out.
 * REFUSED_INVALID, "bad-expression", with e->position of the first constant. -ENOMEM.
 */
int filter_check_constants(const Filter *f, const FilterSubject *subjects, size_t n, Explanation *e);
/*
 * What is wrong whatever the event: `sample.NAME` of a NAME that no sample has. REFUSED_NOT_FOUND "unknown-field", with e->position and
 * the nearest name.
 */
int filter_check_names(const Filter *f, Explanation *e);
/* The bytes that it takes in memory: some hundred, and up to some 20 KiB of the longest expressions. */
size_t match_program_size(const MatchProgram *p);
MatchProgram *match_program_ref(MatchProgram *p);
MatchProgram *match_program_unref(MatchProgram *p);
DEFINE_CLEANUP(MatchProgram *, match_program_unref)

/*
 * Whether the sample matches. With a Plan the reader has made sure that r->raw_size >= plan->min_size; r->comm must not
 * be NULL. Any thread.
 */
bool match_run(const MatchProgram *p, const Record *r);
/*
 * Nobody wants to know any more: from now on it is not worked through, and what it takes more than a few comparisons to find out does
 * not match. Any thread.
 */
void match_program_end(MatchProgram *p);
/*
 * Whether match_run() only says that the sample may match, because the expression asks for the process (process-condition.h).
 * Then what of it is known, and holds, goes to who knows the rest. Not of a program that is over: nobody decides that any more.
 */
bool match_is_partial(const MatchProgram *p);
ConditionWord match_run_parts(const MatchProgram *p, const Record *r, uint32_t number);
/* Whether r->comm is looked at also of records of which it is not sure. */
bool match_needs_comm(const MatchProgram *p);
