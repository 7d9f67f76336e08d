/* For the files of the doctor among themselves: one examination on its way. Main thread only. */
#pragma once

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/kernel/doctor/doctor.h"

#ifndef CAP_PERFMON /* Linux 5.8 */
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

typedef struct Doctor {
        const DoctorWants *wants;
        DoctorReport *report;
        const char *topic; /* of the rows that are added */
        int error;         /* -ENOMEM: rows are missing */

        /* asked once, at the beginning */
        uint32_t *cpus; /* online */
        size_t n_cpus;
        uint64_t capabilities, bounding; /* effective, and what they may be given */
        bool has_seccomp; /* a filter that perfd has not made itself */
        bool is_user_namespace; /* not the first one: capabilities there do not count for perf events */
        long paranoid;          /* kernel.perf_event_paranoid; -2: there is none */

        /* learned on the way */
        bool can_open, can_host, can_map, can_place, has_fds;
        uint64_t missed; /* capabilities for want of which a trial was refused */
        char *tracing;   /* NULL: no tracefs */
        int tracing_fd;  /* of a mount that nobody else sees, or -1 */

        /* what doctor_permit() and doctor_path() give, until they are called again */
        char remedy[256], path[4096];
} Doctor;

/* Rows. remedy: "" with doctor_yes() only. */
void doctor_yes(Doctor *d, const char *what, const char *found, ...) __attribute__((format(printf, 3, 4)));
void doctor_no(Doctor *d, const char *what, const char *remedy, const char *found, ...)
        __attribute__((format(printf, 4, 5)));

bool doctor_has(const Doctor *d, int capability);
/*
 * What to do after EPERM or EACCES: give the capability if it is missing (and then it is noted as missed), or what else
 * stands in the way. `otherwise` is an easier way, as in "sysctl kernel.perf_event_paranoid=1", or NULL.
 */
const char *doctor_permit(Doctor *d, int capability, const char *otherwise);
/* The same for a file of root's; below ProtectKernelTunables= a capability alone does not help. */
const char *doctor_permit_writing(Doctor *d, const char *path, const char *otherwise);
const char *doctor_capability_name(int capability);
/*
 * In a container "--cap-add A --cap-add B"; else "AmbientCapabilities=A B", which changes nothing for what CapabilityBoundingSet= leaves out: then both. names: "A B".
 */
void doctor_list_settings(Doctor *d, uint64_t capabilities, const char *names, char *to, size_t size);

/* Where to set that: "its unit", perfd's. */
const char *doctor_place(Doctor *d);

/* A file below the root: its first bytes, ended by a zero and without the newline. -errno. */
int doctor_read(Doctor *d, const char *path, char *to, size_t size);
/* A number in it; -2 if there is none. */
long doctor_read_number(Doctor *d, const char *path);
/* readlink(2) below the root. -errno */
int doctor_read_link(Doctor *d, const char *path, char *to, size_t size);
/* A path below the root. */
const char *doctor_path(Doctor *d, const char *path);

/* perf_event_open(2) with the attr's size set, close-on-exec. -errno. */
int doctor_open(const struct perf_event_attr *attr, int pid, int cpu, unsigned long flags);
/* Opens, closes. 0 or -errno. */
int doctor_try(const struct perf_event_attr *attr, int pid, int cpu);
/* A disabled event of one's own thread, of user space only: what everyone may have. */
struct perf_event_attr doctor_attr(uint32_t type, uint64_t config);

/* Each in the file of its name. */
void doctor_examine_events(Doctor *d);
void doctor_examine_tracing(Doctor *d);
void doctor_examine_probes(Doctor *d);
void doctor_examine_targets(Doctor *d);
void doctor_examine_limits(Doctor *d);
void doctor_examine_service(Doctor *d);
