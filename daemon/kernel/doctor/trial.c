/*
 * What the files of the doctor have in common: rows, calls, and remedies. A no is explained by what is known of the process: EPERM
 * alone does not tell a missing capability from a seccomp filter, a user namespace or a security module, and the remedy is another
 * one for each.
 */
#include "daemon/kernel/doctor/trial.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/attr/attr-setting.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/printable.h"
#include "daemon/kernel/event/open.h"

static DoctorRow *doctor_add(Doctor *d, const char *what) {
        DoctorRow *rows = reallocarray(d->report->rows, d->report->n + 1, sizeof(*rows));

        if (!rows) {
                d->error = error_origin(-ENOMEM);
                return NULL;
        }
        d->report->rows = rows;
        rows += d->report->n++;
        *rows = (DoctorRow){ .topic = d->topic, .what = what };
        return rows;
}

void doctor_yes(Doctor *d, const char *what, const char *found, ...) {
        DoctorRow *row = doctor_add(d, what);
        va_list ap;

        if (!row)
                return;
        row->works = true;
        va_start(ap, found);
        (void)vsnprintf(row->found, sizeof(row->found), found, ap);
        va_end(ap);
        printable_make(row->found, sizeof(row->found));
}

void doctor_no(Doctor *d, const char *what, const char *remedy, const char *found, ...) {
        DoctorRow *row = doctor_add(d, what);
        va_list ap;

        if (!row)
                return;
        (void)snprintf(row->remedy, sizeof(row->remedy), "%s", remedy);
        va_start(ap, found);
        (void)vsnprintf(row->found, sizeof(row->found), found, ap);
        va_end(ap);
        printable_make(row->found, sizeof(row->found));
        printable_make(row->remedy, sizeof(row->remedy));
}

bool doctor_has(const Doctor *d, int capability) {
        uint64_t with = 1ULL << capability;

        if (capability == CAP_PERFMON) /* which was a part of it, and still is in it */
                with |= 1ULL << CAP_SYS_ADMIN;
        return d->capabilities & with;
}

const char *doctor_capability_name(int capability) {
        switch (capability) {
        case CAP_PERFMON:
                return "CAP_PERFMON";
        case CAP_DAC_READ_SEARCH:
                return "CAP_DAC_READ_SEARCH";
        case CAP_DAC_OVERRIDE:
                return "CAP_DAC_OVERRIDE";
        case CAP_SYS_PTRACE:
                return "CAP_SYS_PTRACE";
        case CAP_SYS_NICE:
                return "CAP_SYS_NICE";
        case CAP_CHOWN:
                return "CAP_CHOWN";
        case CAP_IPC_LOCK:
                return "CAP_IPC_LOCK";
        case CAP_SYS_ADMIN:
                return "CAP_SYS_ADMIN";
        default:
                return "a capability";
        }
}

/* One that a manager of containers has made, which has options and no unit, but for one with a systemd of its own. */
static bool is_in_container(Doctor *d) {
        if (access(doctor_path(d, "/run/systemd/system"), F_OK) == 0)
                return false;
        return access(doctor_path(d, "/run/.containerenv"), F_OK) == 0 || access(doctor_path(d, "/.dockerenv"), F_OK) == 0;
}

const char *doctor_place(Doctor *d) {
        return is_in_container(d) ? "the options of its container" : "its unit";
}

/* "CAP_A CAP_B" as options. */
static void list_options(const char *names, char *to, size_t size) {
        size_t used = 0;

        *to = '\0';
        while (*names && used < size) {
                const size_t n = strcspn(names, " ");

                names += strlen("CAP_");
                used += (size_t)snprintf(to + used, size - used, "%s--cap-add %.*s", used > 0 ? " " : "", (int)(n - strlen("CAP_")),
                                         names);
                names += n - strlen("CAP_");
                names += *names == ' ';
        }
}

void doctor_list_settings(Doctor *d, uint64_t capabilities, const char *names, char *to, size_t size) {
        if (is_in_container(d))
                list_options(names, to, size);
        else if (capabilities & ~d->bounding)
                (void)snprintf(to, size, "AmbientCapabilities=%s and CapabilityBoundingSet=%s", names, names);
        else
                (void)snprintf(to, size, "AmbientCapabilities=%s", names);
}

const char *doctor_permit(Doctor *d, int capability, const char *otherwise) {
        char *remedy = d->remedy;
        const size_t size = sizeof(d->remedy);

        if (capability == CAP_SYS_ADMIN && d->wants->privileges->has_given_up)
                (void)snprintf(remedy, size, "perfd --keep-capabilities, in ExecStart= of its unit: it had CAP_SYS_ADMIN, and "
                        "dropped it at its start");
        else if (!doctor_has(d, capability)) {
                char settings[128];

                d->missed |= 1ULL << capability;
                doctor_list_settings(d, 1ULL << capability, doctor_capability_name(capability), settings, sizeof(settings));
                (void)snprintf(remedy, size, "give perfd %s (%s in %s)%s%s", doctor_capability_name(capability), settings, doctor_place(d),
                               otherwise ? ", or " : "", otherwise ? otherwise : "");
        } else if (capability == CAP_PERFMON && d->paranoid > 2 && !doctor_has(d, CAP_SYS_ADMIN)) {
                bool has_given_up = d->wants->privileges->has_given_up; /* the level was another one then */

                d->missed |= has_given_up ? 0 : 1ULL << CAP_SYS_ADMIN;
                (void)snprintf(remedy, size,
                               "sysctl kernel.perf_event_paranoid=2, or %s CAP_SYS_ADMIN, which this kernel requires above 2",
                               has_given_up ? "restart perfd, which dropped" : "give perfd");
        } else if (d->has_seccomp)
                (void)snprintf(remedy, size, "allow the call in the seccomp filter of this process: SystemCallFilter=%s in "
                               "perfd's unit, or the profile of the container",
                               capability == CAP_PERFMON || capability == CAP_SYS_ADMIN ? "perf_event_open" : "@system-service");
        else if (d->is_user_namespace)
                (void)snprintf(remedy, size, "run perfd in the host's initial user namespace: %s has no effect in others",
                               doctor_capability_name(capability));
        else
                (void)snprintf(remedy, size,
                               "a security module forbids it: see dmesg, and "
                               "/sys/kernel/security/lockdown");
        return remedy;
}

const char *doctor_permit_writing(Doctor *d, const char *path, const char *otherwise) {
        struct statvfs fs;
        bool is_read_only = statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY;
        const char *remedy;
        size_t n;

        if (is_read_only && doctor_has(d, CAP_DAC_OVERRIDE)) {
                (void)snprintf(d->remedy, sizeof(d->remedy), "ProtectKernelTunables=no in perfd's unit");
                return d->remedy;
        }
        remedy = doctor_permit(d, CAP_DAC_OVERRIDE, is_read_only ? NULL : otherwise);
        n = strlen(remedy);
        if (is_read_only)
                (void)snprintf(d->remedy + n, sizeof(d->remedy) - n, ", and ProtectKernelTunables=no in its unit");
        return remedy;
}

const char *doctor_path(Doctor *d, const char *path) {
        (void)snprintf(d->path, sizeof(d->path), "%s%s", d->wants->root, path);
        return d->path;
}

int doctor_read(Doctor *d, const char *path, char *to, size_t size) {
        _cleanup_close_ int fd = open(doctor_path(d, path), O_RDONLY | O_CLOEXEC);
        size_t n = 0;

        if (fd < 0)
                return error_origin(-errno);
        while (n + 1 < size) {
                ssize_t part = read(fd, to + n, size - 1 - n);

                if (part < 0 && errno == EINTR)
                        continue;
                if (part < 0)
                        return error_origin(-errno);
                if (part == 0)
                        break;
                n += (size_t)part;
        }
        to[n] = '\0';
        if (n > 0 && to[n - 1] == '\n')
                to[n - 1] = '\0';
        return 0;
}

long doctor_read_number(Doctor *d, const char *path) {
        char text[32], *end;
        long number;

        if (doctor_read(d, path, text, sizeof(text)) < 0)
                return -2;
        number = strtol(text, &end, 10);
        return end == text ? -2 : number;
}

int doctor_read_link(Doctor *d, const char *path, char *to, size_t size) {
        ssize_t n = readlink(doctor_path(d, path), to, size - 1);

        if (n < 0)
                return error_origin(-errno);
        to[n] = '\0';
        return 0;
}

struct perf_event_attr doctor_attr(uint32_t type, uint64_t config) {
        return (struct perf_event_attr){
                .type = type, .config = config, .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1
        };
}

int doctor_open(const struct perf_event_attr *attr, int pid, int cpu, unsigned long flags) {
        struct perf_event_attr copy = *attr;
        int fd;

        copy.size = attr_least_size(&copy);
        fd = open_perf_event(&copy, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? error_origin(-errno) : fd;
}

int doctor_try(const struct perf_event_attr *attr, int pid, int cpu) {
        int fd = doctor_open(attr, pid, cpu, 0);

        (void)open_close(fd);
        return fd < 0 ? fd : 0;
}
