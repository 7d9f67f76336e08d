/*
 * For the supervisor: perf event fds. Every refused call is explained: what was asked, what Linux said, why, what to
 * do. Main thread only.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/error.h"

/* The seam for tests: perf_event_open(2). */
extern int (*open_perf_event)(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

enum {
        OPEN_E_OFFLINE = _REFUSED_MAX, /* that CPU is not online (any more) */
        OPEN_E_EXITED,                 /* that pid is gone */
};

/*
 * One fd, close-on-exec. what: for the explanation, the event's name. Also OPEN_E_OFFLINE and OPEN_E_EXITED, which
 * are no failure of the rest.
 */
int open_event(const struct perf_event_attr *attr, const char *what, pid_t pid, int cpu, int *ret_fd, Explanation *e);
int open_id(int fd, uint64_t *ret_id, Explanation *e);
/* Joins the carrier's ring and learns the fd's stream id. */
int open_redirect(int fd, int carrier_fd, const char *what, uint64_t *ret_id, Explanation *e);
/*
 * Whether each parenthesis and quote has its other, as the kernel reads them (calc_stack()). It has to be asked before a
 * filter is put into parentheses beside another: there `a) || (b` would be taken, as something else.
 */
bool open_filter_is_closed(const char *filter);
/* REFUSED_INVALID without explanation if the kernel does not accept it: tracing_explain_filter() says why. */
int open_set_filter(int fd, const char *filter, const char *what, Explanation *e);
/*
 * Enables or disables; -errno. Any thread, but for an event that may fire meanwhile it has to be one on the event's own
 * CPU. From another one it is done by an interrupt, which may land in the middle of a tracepoint: the kernel has then
 * counted an occurrence whose record it does not write (seen on 6.18).
 */
int open_switch(int fd, bool on);
/* Why open_switch(..., true) failed with -r. */
int open_explain_switch(int r, const char *what, Explanation *e);
/* The event's count and, where the kernel knows it, how many of its records found the ring full. */
int open_read(int fd, bool has_lost, uint64_t *ret_count, uint64_t *ret_lost);

/* Whether this kernel has PERF_FORMAT_LOST (6.0). Negative or a refusal if no perf event can be opened at all. */
int open_probe(bool *ret_has_lost, Explanation *e);
/* Why mmap(2) of a ring failed with -r. */
int open_explain_mmap(int r, size_t size, int cpu, Explanation *e);
