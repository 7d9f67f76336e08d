/*
 * Which CPUs are idle, seen from another one without waking them. Where nothing happens, nobody who runs there can say so; but
 * RCU knows of each CPU whether it is watched, and one that is not, because it is idle, is in the middle of nothing: every
 * tracepoint and every perf event belongs to what RCU watches, interrupts and NMIs too. A BPF program reads that word. A CPU
 * in user mode without a tick (nohz_full) counts as idle, and is in the middle of nothing either.
 *
 * Known not to be so: optimised kprobes on the idle functions themselves before Linux 6.3. Their samples can come too late,
 * and are counted so.
 *
 * Made by main; then the thread that holds the dispatch lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

typedef struct IdleCpus IdleCpus;

/*
 * For CPUs below n_cpus. A kernel that has no BPF, no description of itself (BTF), or none of these words, and a process that
 * may not, are refused, each with what is missing: then every CPU has to be asked itself. -ENOMEM.
 */
int idle_cpus_open(uint32_t n_cpus, IdleCpus **ret, Explanation *e);
IdleCpus *idle_cpus_free(IdleCpus *i);
DEFINE_CLEANUP(IdleCpus *, idle_cpus_free)
/* Main: this CPU is there, and may be looked at from now on. What the kernel says if it cannot. */
int idle_cpus_find(IdleCpus *i, uint32_t cpu);

/* To be looked at next. */
void idle_cpus_want(IdleCpus *i, uint32_t cpu);
/* A system call. Negative: it is of no use any more, now or later. */
int idle_cpus_look(IdleCpus *i);
/* Once: it was wanted, and idle at some time during that call. */
bool idle_cpus_take(IdleCpus *i, uint32_t cpu);
