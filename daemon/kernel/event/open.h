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
#include "daemon/model/record.h"

/* The seam for tests: perf_event_open(2). */
extern int (*open_perf_event)(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

/*
 * Closes an fd of perf_event_open(2) that turned out not to be wanted: in the closer thread, once main has said how, because the
 * last close of a tracepoint or probe waits for RCU grace periods. Gives -1 back, and keeps errno.
 */
int open_close(int fd);
/*
 * The same of an event of this perf_event_attr.type. Breakpoints are closed at once: a CPU has few registers for them,
 * which the next one may need, and no grace period is waited for.
 */
int open_close_of(uint32_t type, int fd);
void open_set_closer(void (*close)(void *userdata, int fd), void *userdata); /* NULL: at once */

static inline void open_closep(int *fd) {
        (void)open_close(*fd);
}

enum {
        OPEN_E_OFFLINE = _REFUSED_MAX, /* that CPU is not online (any more) */
        OPEN_E_EXITED,                 /* that pid is gone */
        OPEN_E_APART,                  /* the members of a group cannot be read together just now */
        OPEN_E_LEADER_LEFT,            /* the leader observes another task than the member would, or one that has ended */
};

/* Whom an fd observes, and where. */
typedef struct OpenPlace {
        int pid;        /* -1: everybody on the CPU */
        bool is_cgroup; /* pid is the fd of a cgroup's folder */
        int cpu;
        int leader_fd;  /* of the group that it joins, or -1 */
        bool may_try_again; /* the whole group is opened again if its leader has left */
        uint64_t config3; /* perf_event_attr.config3, which the header may not have */
} OpenPlace;

/*
 * One fd, close-on-exec. what: for the explanation, the event's name. Also OPEN_E_OFFLINE and OPEN_E_EXITED, which
 * are no failure of the rest, and OPEN_E_LEADER_LEFT if it may.
 */
int open_event(const struct perf_event_attr *attr, const char *what, OpenPlace place, int *ret_fd, Explanation *e);
/*
 * This machine cannot count it: opening it is refused by EOPNOTSUPP, ENOENT, ENODEV, EINVAL or EACCES, for which another
 * event may stand in. False also if it is refused for another reason, which open_event() then says.
 */
bool open_is_missing(const struct perf_event_attr *attr, int cpu);
/* Its PMU has no interrupt, as PERF_PMU_CAP_NO_INTERRUPT says inside the kernel alone: only what samples is refused. */
bool open_is_only_counted(const struct perf_event_attr *attr, int cpu);
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
/*
 * All of them, twice: Linux gives a child the state that its parent's event had when the fork began, and makes it known to the
 * fd at its end (inherit_event()), so that a switch in between passes it by. The second one costs nothing where that was not so,
 * and finds those whose fork has ended meanwhile.
 */
int open_switch_all(const int *fds, size_t n, bool on);
/* Why open_switch(..., true) failed with -r. */
int open_explain_switch(int r, const char *what, Explanation *e);
/*
 * What the fd has counted; `lost`, where the kernel knows it, how many of its records found the ring full. read_format is
 * its attr's; of a group's leader that reads all members it gives the leader's own. OPEN_E_APART: as open_read_group(), which only such a leader says. -errno.
 */
int open_read(int fd, uint64_t read_format, ReadCount *ret);
/* The same; waits some milliseconds for forks that are on their way. */
int open_read_patiently(int fd, uint64_t read_format, ReadCount *ret);

/*
 * What all n members of a group have counted, at one moment, by a leader whose attr has PERF_FORMAT_GROUP. OPEN_E_APART: some
 * of them, or of a child's, are not there (any more); each is to be read alone. -errno.
 */
int open_read_group(int fd, uint64_t read_format, ReadCount *ret, size_t n);

/* Whether this kernel has PERF_FORMAT_LOST (6.0). Negative or a refusal if no perf event can be opened at all. */
int open_probe(bool *ret_has_lost, Explanation *e);
/* Whether inherited events can have PERF_SAMPLE_READ (6.13). */
int open_probe_reads(bool *ret_inherits_reads, Explanation *e);
/* Why mmap(2) of a ring failed with -r. */
int open_explain_mmap(int r, size_t size, int cpu, Explanation *e);
