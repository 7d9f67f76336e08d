/* For the supervisor, at start: which capabilities perfd goes on with. Main thread only, before there is another one. */
#pragma once

#include <stdbool.h>

/*
 * What became of CAP_SYS_ADMIN, and of what else root has. `text` says it, and why, in a line for the log; "" if there is
 * nothing to be said: perfd is not root and does not have it.
 */
typedef struct PrivilegesReport {
        bool keep;         /* set by who asks: it is wanted for something else */
        bool has_given_up; /* CAP_SYS_ADMIN: this process cannot get it back */
        bool is_wrong;     /* it could be given up and was not, because of what the text says */
        char text[256];
} PrivilegesReport;

#define PRIVILEGES_REPORT_NULL ((PrivilegesReport){ .text = "" })

/*
 * Tries whether this kernel opens perf events of the host with CAP_PERFMON alone, and gives CAP_SYS_ADMIN up for good if
 * it does, unless it is to be kept. Root gives up whatever else perfd has no use for. Fills the rest of the report. -errno: what was tried cannot be taken back.
 */
int privileges_reduce(PrivilegesReport *report);
