/* An examination: what is learned of the process, and then one file after the other. */
#include "daemon/kernel/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/doctor/trial.h"
#include "daemon/kernel/host/whole-file.h"

static bool is_first_namespace(Doctor *d, const char *path, const char *first) {
        char link[64];

        return doctor_read_link(d, path, link, sizeof(link)) < 0 || strcmp(link, first) == 0;
}

/* "CapEff:\t000001ffffffffff" of /proc/self/status */
static const char *status_find(const char *status, const char *key) {
        const char *at = strstr(status, key);

        return at ? at + strlen(key) + strspn(at + strlen(key), " \t") : NULL;
}

/*
 * "Seccomp:\t2" and, since Linux 5.9, "Seccomp_filters:\t1". Without a number of them perfd's own filter is taken for the only
 * one, because whoever starts perfd mostly has none.
 */
static bool has_foreign_filter(const Doctor *d, const char *status) {
        const char *mode = status_find(status, "\nSeccomp:"), *n = status_find(status, "\nSeccomp_filters:");

        if (!mode || (*mode != '1' && *mode != '2'))
                return false;
        return n ? strtoul(n, NULL, 10) > d->wants->n_own_filters : d->wants->n_own_filters == 0;
}

static int doctor_learn(Doctor *d) {
        _cleanup_free_ char *status = NULL, *online = NULL; /* groups in front of capabilities, and CPUs, are as many as there are */
        const char *text;
        size_t length;
        int r;

        d->paranoid = doctor_read_number(d, "/proc/sys/kernel/perf_event_paranoid");
        r = whole_file_read(doctor_path(d, "/proc/self/status"), &status, &length); /* without it nothing is held */
        if (r == -ENOMEM)
                return r;
        if (status && (text = status_find(status, "\nCapEff:")))
                d->capabilities = strtoull(text, NULL, 16);
        d->bounding = status && (text = status_find(status, "\nCapBnd:")) ? strtoull(text, NULL, 16) : UINT64_MAX;
        d->has_seccomp = status && has_foreign_filter(d, status);
        d->is_user_namespace = !is_first_namespace(d, "/proc/self/ns/user",
                                                   "user:[4026531837]"); /* PROC_USER_INIT_INO */
        r = whole_file_read(doctor_path(d, "/sys/devices/system/cpu/online"), &online, &length);
        if (r == -ENOMEM)
                return r;
        if (r == 0)
                r = cpu_list_parse(online, &d->cpus, &d->n_cpus, NULL);
        if (r == 0)
                return 0;
        d->cpus = calloc(1, sizeof(*d->cpus)); /* no such list: the one that everyone has */
        d->n_cpus = 1;
        return d->cpus ? 0 : error_origin(-ENOMEM);
}

int doctor_examine(const DoctorWants *wants, DoctorReport *ret, Explanation *e) {
        DoctorReport report = DOCTOR_REPORT_NULL;
        Doctor d = { .wants = wants, .report = &report, .tracing_fd = -1 };
        static void (*const topics[])(Doctor *d) = { doctor_examine_events, doctor_examine_tracing, doctor_examine_probes,
                                                     doctor_examine_targets, doctor_examine_limits, doctor_examine_service };

        thread_assert(THREAD_MAIN);
        d.error = doctor_learn(&d);
        if (d.error == 0) {
                for (size_t i = 0; i < ARRAY_SIZE(topics) && d.error == 0; i++) {
                        topics[i](&d);
                        d.error = d.error == 0 ? checkpoint(e) : d.error;
                }
        }
        report.can_run = d.can_open && d.can_host && d.can_map && d.can_place && d.has_fds;
        close_fd(d.tracing_fd);
        free(d.tracing);
        free(d.cpus);
        if (d.error != 0) {
                doctor_report_deinit(&report);
                return d.error;
        }
        *ret = report;
        return 0;
}

void doctor_report_deinit(DoctorReport *r) {
        free(r->rows);
        *r = DOCTOR_REPORT_NULL;
}
