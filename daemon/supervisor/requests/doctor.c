/*
 * What this host allows: asked of a running daemon, or by `perfd --check-host` before there is one. A daemon does not
 * map its rings a second time for it: that it has them is the answer.
 */
#include "daemon/supervisor/requests/doctor.h"

#include "daemon/kernel/doctor/doctor.h"
#include "daemon/kernel/privileges/system-calls.h"
#include "daemon/supervisor/events/room.h"
#include "daemon/supervisor/events/specs.h"
#include "daemon/supervisor/requests/requests.h"

#include <stdio.h>
#include <string.h>

static DoctorWants doctor_wants(const Config *config, const char *tracing, const PrivilegesReport *privileges,
                                const char *no_idle, bool has_rings) {
        size_t none = events_own_fds(0);

        return (DoctorWants){ .root = "",
                              .tracing = tracing,
                              .privileges = privileges,
                              .n_own_filters = system_calls_count_filters(),
                              .no_idle = no_idle,
                              .clock = config->clock,
                              .ring_size = config->ring_size,
                              .has_rings = has_rings,
                              .n_own_fds = none,
                              .n_fds_each_cpu = events_own_fds(1) - none };
}

static int row_message(const DoctorRow *row, Perfd__V1__DoctorRow **ret) {
        Perfd__V1__DoctorRow *m = malloc(sizeof(*m));
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__doctor_row__init(m);
        *ret = m;
        m->works = row->works;
        if ((r = string_set(&m->topic, row->topic)) < 0 || (r = string_set(&m->what, row->what)) < 0 ||
            (r = string_set(&m->found, row->found)) < 0)
                return r;
        return string_set(&m->remedy, row->remedy);
}

/* One at a time, so that they are not more and more: instances of inotify are few (fs.inotify.max_user_instances). */
static void close_later(void *userdata, int fd) {
        Requests *s = userdata;

        if (atomic_load_explicit(&s->n_doctor_fds, memory_order_relaxed) == 0)
                closer_close(s->operations->closer, &fd, 1, &s->n_doctor_fds);
        else
                close_fd(fd);
}

/* Trials are one at a time: nobody replaces it until it is in the response. */
static int examine(Requests *s, Explanation *e) {
        DoctorWants wants = doctor_wants(s->settings->config,
                                         tracing_is_missing(&s->host->tracing) ? NULL : s->host->tracing.root,
                                         &s->host->privileges, s->readers->no_idle.text, true);
        DoctorReport report = DOCTOR_REPORT_NULL;
        int r;

        wants.clock = s->settings->started_with->clock;
        wants.has_given_sockets = s->settings->is_given_stream;
        wants.close = close_later;
        wants.userdata = s;
        r = doctor_examine(&wants, &report, e);
        if (r != 0) {
                doctor_report_deinit(&report);
                return r;
        }
        doctor_report_deinit(&s->examined);
        s->examined = report;
        s->examined_at = clock_now(CLOCK_MONOTONIC);
        return 0;
}

/* Each makes main wait for the kernel, so all those without privileges together get one in a second. */
static bool has_to_examine(const Requests *s, const Peer *peer) {
        return peer->may_change || peer->uid == 0 || s->examined.n == 0 ||
               clock_now(CLOCK_MONOTONIC) - s->examined_at >= NSEC_PER_SEC;
}

int handle_doctor(RequestContext *a, Explanation *e) {
        Requests *s = a->requests;
        Perfd__V1__DoctorReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__doctor_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_DOCTOR;
        a->response->doctor = reply;
        r = has_to_examine(s, connection_peer(a->connection)) ? examine(s, e) : 0;
        if (r == 0) {
                reply->rows = calloc(s->examined.n + 1, sizeof(*reply->rows));
                r = reply->rows ? 0 : error_origin(-ENOMEM);
        }
        for (size_t i = 0; i < s->examined.n && r == 0; i++) {
                r = row_message(&s->examined.rows[i], &reply->rows[i]);
                reply->n_rows += reply->rows[i] != NULL;
        }
        return r;
}

static void print_json_text(const char *name, const char *text, const char *after) {
        printf("\"%s\":\"", name);
        for (; *text; text++)
                if (*text == '"' || *text == '\\')
                        printf("\\%c", *text);
                else if ((unsigned char)*text < ' ')
                        printf("\\u%04x", *text);
                else
                        putchar(*text);
        printf("\"%s", after);
}

static void print_json(const DoctorRow *row) {
        putchar('{');
        print_json_text("topic", row->topic, ",");
        print_json_text("what", row->what, ",");
        printf("\"works\":%s,", row->works ? "true" : "false");
        print_json_text("found", row->found, ",");
        print_json_text("remedy", row->remedy, "}\n");
}

/* As `perfctl doctor` prints it. */
static void print_text(const DoctorRow *row) {
        if (!isatty(STDOUT_FILENO)) {
                printf("%s\t%s\t%s\t%s\t%s\n", row->topic, row->what, row->works ? "yes" : "no", row->found,
                       row->remedy);
                return;
        }
        printf("%-8s %-3s %-27s %s\n", row->topic, row->works ? "yes" : "NO", row->what, row->found);
        if (*row->remedy)
                printf("%41s-> %s\n", "", row->remedy);
}

int requests_check_host(const Config *config, bool keep_capabilities, bool json) {
        PrivilegesReport privileges = { .keep = keep_capabilities };
        DoctorReport report = DOCTOR_REPORT_NULL;
        _cleanup_(idle_cpus_freep) IdleCpus *idle = NULL;
        Explanation no_idle = EXPLANATION_NULL;
        int r = readers_open_idle(&idle, &no_idle); /* as a perfd that is started here */
        DoctorWants wants = doctor_wants(config, NULL, &privileges, no_idle.text, false);
        int tracing = doctor_mount_tracing();

        wants.hidden_tracing = &tracing;
        if (r == 0)
                r = privileges_reduce(&privileges);
        if (r == 0)
                r = doctor_examine(&wants, &report, NULL);
        for (size_t i = 0; i < report.n; i++)
                if (json)
                        print_json(&report.rows[i]);
                else
                        print_text(&report.rows[i]);
        if (r == 0 && isatty(STDOUT_FILENO) && !json)
                printf("\nperfd %s run here\n", report.can_run ? "can" : "cannot");
        if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
                r = -EIO;
        if (r == 0)
                r = report.can_run ? 0 : REFUSED_UNSUPPORTED;
        doctor_report_deinit(&report);
        close_fd(tracing);
        return r;
}
