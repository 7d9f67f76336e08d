/*
 * For `perfd --check-host` and the doctor request: what this kernel, these privileges and these limits allow, row by
 * row, with the smallest remedy for each no. Each thing is tried, nothing is guessed from version numbers, and what was
 * tried is gone again when this returns. Main thread only; it takes a moment, because closing events waits for the
 * kernel.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "daemon/base/error.h"
#include "daemon/kernel/privileges/privileges.h"

typedef struct DoctorRow {
        const char *topic; /* "events", "probes", "targets", "limits", "service" */
        const char *what;  /* "kprobes", "PERF_FORMAT_LOST" */
        bool works;
        char found[320];  /* what was tried and what Linux said */
        char remedy[512]; /* the smallest one; "" if it works */
} DoctorRow;

/* What perfd needs, as its configuration says. */
typedef struct DoctorWants {
        const char
                *root; /* "" in production: before every path of /proc and /sys, so that a test can lay out its own */
        const char *
                tracing; /* where tracefs is; NULL: it is looked for, and mounted for the moment where nobody sees it */
        const PrivilegesReport *privileges; /* what this process did at its start */
        unsigned n_own_filters; /* seccomp filters that this process has made itself: they deny nothing that is tried */
        const char *no_idle; /* why it does not see idle CPUs; "": it does; NULL: nobody asks */
        clockid_t clock;
        size_t ring_size; /* data bytes of each CPU's ring */
        bool has_given_sockets; /* systemd has made them */
        bool has_rings;   /* this process has mapped its rings already: they are not tried a second time */
        size_t n_own_fds; /* that it needs before it traces anything; without the rings' and the readers' own */
        size_t n_fds_each_cpu;
        void (*close)(void *userdata, int fd); /* takes what takes long to be closed; NULL: it is closed at once */
        void *userdata;
        const int *hidden_tracing; /* what doctor_mount_tracing() gave while perfd had what it starts with; NULL: nothing */
} DoctorWants;

typedef struct DoctorReport {
        DoctorRow *rows;
        size_t n;
        bool can_run; /* perfd would start, whatever else does not work */
} DoctorReport;

#define DOCTOR_REPORT_NULL ((DoctorReport){ .rows = NULL })

/* -ENOMEM, REFUSED_CANCELLED; what does not work is a row. */
int doctor_examine(const DoctorWants *wants, DoctorReport *ret, Explanation *e);
void doctor_report_deinit(DoctorReport *r);

/* The same trials for who lists what a machine offers: a watched address, the two kinds of probes. */
bool doctor_has_breakpoints(void);
/* They can be opened, and never count, as in some virtual machines. */
bool doctor_breakpoints_never_count(void);
bool doctor_has_kprobes(const char *tracing);
bool doctor_has_uprobes(const char *tracing);
/* tracefs without a place, which perfd may mount before it gives up privileges: an fd, or -errno. */
int doctor_mount_tracing(void);
