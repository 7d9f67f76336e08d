/* For supervisor and readers: what /proc says of tasks and CPUs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/model/record.h"

/* The threads of a process, sorted. REFUSED_NOT_FOUND "gone" if there is no such process; or why it is not known. */
int tasks_of_process(uint32_t pid, uint32_t **ret_tids, size_t *ret_n, Explanation *e);
/* Who was whose child when all of /proc was read last. One thread at a time. */
typedef struct TaskFamilies {
        struct Family *list; /* sorted by parent */
        size_t n;
        nsec_t read_at; /* CLOCK_MONOTONIC: before it was */
} TaskFamilies;

void task_families_deinit(TaskFamilies *f);
/*
 * The children of some processes, their children and so on, as far as they still have their parents; each once, and none of
 * `pids`, which are sorted. As of a time that is at most max_age ago, and now if that is 0; reads /proc once, if at all.
 */
int tasks_descendants(TaskFamilies *f, nsec_t max_age, const uint32_t *pids, size_t n, uint32_t **ret_pids, size_t *ret_n,
                      Explanation *e);
/*
 * When the thread that has this tid now was born, by this clock, to 10 ms; more by one that stands still while the host is
 * suspended. False if there is none.
 */
bool task_birth(clockid_t clock, uint32_t tid, nsec_t *ret);
/* Its state, as proc_pid_stat(5) has it; '\0' if there is none. */
#define TASK_STATE_UNINTERRUPTIBLE 'D'
char task_state(uint32_t tid);
/* Both at once. '\0': ret_birth is not set. */
char task_life(clockid_t clock, uint32_t tid, nsec_t *ret_birth);
/* Name of a thread from /proc; false if it is gone. Any thread; no allocation. */
bool task_comm(uint32_t tid, char ret_comm[static COMM_SIZE]);
/* Whether pids here are those of the kernel's own view (common_pid of tracepoints). */
bool tasks_in_root_namespace(void);
/* Whether /proc is that of our own pid namespace: else the pids there are others' than those that the kernel tells us. */
bool tasks_has_own_proc(void);
/* The CPUs of a file that has a list of them, sorted. */
int cpus_read(const char *path, uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
/* Those that can be there. */
int cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
int cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e);
/* Both to config/host.h, if sysfs has them. -ENOMEM. */
int cpus_tell_config(void);
