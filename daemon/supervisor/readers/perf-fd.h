/* For the supervisor: perf fds that were opened together. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/model/event.h"

/* The fds of one event, opened together. */
typedef struct PerfFd {
        uint32_t slot;   /* of its CPU */
        uint32_t member; /* of its group; 0: the leader, or alone */
        int fd;
        uint64_t id;
        nsec_t since;    /* before it was opened: who is born later inherits it */
        uint64_t target_id;   /* tid, inode of a cgroup, or 0: the whole CPU */
        bool is_cgroup;
        bool is_successor;    /* as in SnapshotStream, until event_fds_cut_over() */
        bool leaves;     /* what it observes is gone: changes_drop_leaving() */
        bool awaits_exec; /* its task enables it, by its next exec: event_fds_enable() leaves it alone until then */
        bool is_breakpoint;
        bool is_sampling; /* as in SnapshotStream, as the next two */
        uint64_t period;
        uint64_t read_format;
} PerfFd;

typedef struct PerfFdSet {
        PerfFd *fds;
        size_t n;
        Event *event;         /* whose they are, by its origin, which lives as long as these; NULL: carriers */
        nsec_t whole, listed; /* when all were open, and when it was looked whether that is everybody; 0: long ago */
} PerfFdSet;

#define PERF_FD_SET_NULL ((PerfFdSet){ .fds = NULL })
