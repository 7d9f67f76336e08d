/*
 * A stream becomes a recording: the events with their attrs and the formats of tracepoints before it begins, who was there when it has begun,
 * then each item as the record that the kernel would have written. Items come in the order of time, so each FINISHED_ROUND holds.
 */
#include "client/perfctl/recorder/recorder.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/signals.h"
#include "client/perfctl/events/target.h"
#include "client/perfctl/recorder/tasks.h"
#include "client/perfctl/recorder/user-stack.h"

#define RATE_OF_COMMANDS 999
#define FEW 10 /* samples, of which a profile says nothing */
#define FINISHED_ROUND 68               /* PERF_RECORD_FINISHED_ROUND of perf */
#define ROUND ((uint64_t)1 << 22)       /* bytes */
#define FLUSH UINT64_C(1000000000)      /* ns: no more than that is missing of a recording that was killed */
#define CHAIN_MAX ((size_t)1024)        /* addresses, as sysctl kernel.perf_event_max_stack allows at most, and what parts them */
#define KERNEL_ADDRESS (UINT64_C(1) << 63)

static bool is_full(const void *userdata) {
        return ((const Recorder *)userdata)->has_failed;
}

static uint32_t clock_of(const char *name) {
        static const struct {
                const char *name;
                clockid_t id;
        } clocks[] = { { "monotonic-raw", CLOCK_MONOTONIC_RAW }, { "boottime", CLOCK_BOOTTIME }, { "realtime", CLOCK_REALTIME } };

        for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
                if (strcmp(clocks[i].name, name) == 0)
                        return (uint32_t)clocks[i].id;
        return CLOCK_MONOTONIC;
}

/* --pid without another target, or a command alone. What else is a target, tasks join while it is recorded, of which nothing is said then. */
static void choose_pids(Recorder *r) {
        static const char *const others[] = { "tid", "cgroup", "container", "unit", "target" };
        perfd_event_spec target = PERFD_EVENT_SPEC_INIT;
        size_t n;

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (perfctl_get(r->p, others[i]) || (perfctl_get_all(r->p, others[i], &n), n > 0))
                        return;
        if (r->loop.command.pid > 0 && !command_is_beside(r->p)) {
                r->pids = must_have(calloc(1, sizeof(*r->pids)));
                r->pids[0] = (uint32_t)r->loop.command.pid;
                r->n_pids = 1;
        } else if (perfctl_get(r->p, "pid") && target_parse(r->p, &target) == 0) { /* which has been said otherwise */
                r->pids = must_have(calloc(target.n_pids, sizeof(*r->pids)));
                memcpy(r->pids, target.pids, target.n_pids * sizeof(*r->pids));
                r->n_pids = target.n_pids;
        }
        target_deinit(&target);
}

static void choose_tasks(Recorder *r) {
        choose_pids(r);
        if (r->n_pids == 0)
                return;
        r->others = others_new();
        for (size_t i = 0; i < r->n_pids; i++)
                (void)others_add_recorded(r->others, r->pids[i]);
}

static void look_at_tasks(Recorder *r) {
        if (r->n_pids == 0)
                proc_tasks_read(&r->here, recorder_unwinds(r));
        else
                proc_tasks_deinit(&r->early);
}

/* Its clock is this one's wall time, where it does not say more. */
static void take_remote(Recorder *r, const perfd_start *s) {
        r->remote.name = must_have(strdup(s->host));
        r->remote.kernel = must_have(strdup(s->kernel));
        if (!r->remote.wall.is_known)
                r->remote.wall.clock = (DaemonClock){ .id = CLOCK_REALTIME, .ahead = -(uint64_t)s->wall_offset };
}

static bool has_tracepoints(const Recorder *r) {
        for (size_t i = 0; i < r->n_events; i++)
                if (r->events[i]->event.sample_type & PERF_SAMPLE_RAW)
                        return true;
        return false;
}

static void on_start(void *userdata, const perfd_start *s) {
        Recorder *r = userdata;

        if (r->n_events == 0) {
                (void)perfctl_fail(r->p, PERFCTL_FAILED, "none of the events runs");
                r->has_failed = true;
                return;
        }
        if (s->payload != PERFD_PAYLOAD_RAW && has_tracepoints(r)) {
                (void)perfctl_fail(r->p, PERFCTL_FAILED, "the fields of tracepoints cannot be recorded: this connection does not grant the raw bytes "
                                   "of samples; a relay grants them by `raw: true` of its client");
                r->has_failed = true;
                return;
        }
        r->has_begun = true;
        r->clock = clock_of(s->clock);
        choose_tasks(r);
        if (r->p->host)
                take_remote(r, s);
        else
                look_at_tasks(r);
        recorder_put_head(r);
        if (r->has_failed)
                return;
        recorder_put_clocks(r, s->wall_offset);
        if (!r->has_failed && !r->p->host)
                recorder_check(r, recorder_put_tasks(r));
        r->files.head = perfd_recording_writer_size(r->writer);
}

/* One that begins later. */
static void on_event(void *userdata, const perfd_event *e) {
        recorder_add_late(userdata, e);
}

static size_t put_part(uint64_t *chain, size_t n, uint64_t context, const uint64_t *list, size_t n_list) {
        if (n_list == 0)
                return n;
        chain[n++] = context;
        for (size_t i = 0; i < n_list && n < CHAIN_MAX; i++)
                chain[n++] = list[i];
        return n;
}

/* Of one sample after the other: what a record of its event does not hold stays as it is, for most of it is not there in most samples. */
static void put_sample(Recorder *r, const perfd_item *item, const RecorderEvent *e) {
        static uint64_t chain[CHAIN_MAX + 2];
        static perfd_recorded_sample s = { .callchain = chain };
        const uint64_t *kernel, *user;
        const size_t n_kernel = perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &kernel);
        const size_t n_user = perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &user);
        const uint64_t period = perfd_item_period(item);

        s.id.event = &e->event;
        s.id.id = e->id;
        s.id.pid = perfd_item_pid(item);
        s.id.tid = perfd_item_tid(item);
        s.id.time = perfd_item_time(item);
        s.id.cpu = perfd_item_cpu(item);
        s.ip = perfd_item_ip(item);
        s.addr = perfd_item_address(item);
        s.period = period > 0 ? period : 1;
        s.raw = perfd_item_raw(item);
        recorder_check(r, recorder_put_sampled(r, s.id.pid));
        s.n_callchain = put_part(chain, 0, PERF_CONTEXT_KERNEL, kernel, n_kernel);
        s.n_callchain = put_part(chain, s.n_callchain, PERF_CONTEXT_USER, user, n_user);
        user_stack_of_item(item, &s);
        if (s.ip == 0)
                s.ip = n_kernel > 0 ? kernel[0] : n_user > 0 ? user[0] : 0;
        if (r->p->host) {
                recorder_check(r, kernel_functions_put(r, kernel, n_kernel, e->id, s.id.time));
                recorder_check(r, kernel_functions_put(r, &s.ip, e->event.sample_type & PERF_SAMPLE_IP ? 1 : 0, e->id, s.id.time));
        }
        recorder_check(r, perfd_recording_writer_put_sample(r->writer, s.ip == 0 || s.ip >= KERNEL_ADDRESS ? PERF_RECORD_MISC_KERNEL :
                                                                                                    PERF_RECORD_MISC_USER, &s));
        r->n_samples++;
        r->files.n_samples++;
}

static void end_round(Recorder *r) {
        const uint64_t size = perfd_recording_writer_size(r->writer);

        if (size - r->round < ROUND)
                return;
        recorder_check(r, perfd_recording_writer_put(r->writer, FINISHED_ROUND, 0, NULL, 0));
        r->round = size;
}

static void on_item(void *userdata, const perfd_item *item) {
        Recorder *r = userdata;
        const perfd_event *event = perfd_item_event(item);
        const RecorderEvent *e;

        if (perfd_item_record(item) != PERFD_SAMPLE) {
                if (r->has_failed)
                        return;
                recorder_check(r, recorder_put_side_record(r, item));
                return;
        }
        e = event ? recorder_find_event(r, event->id) : NULL;
        if (e && (r->p->host || !pid_set_has(r->named, perfd_item_tid(item))))
                recorder_check(r, recorder_put_name(r, item));
        if (e)
                put_sample(r, item, e);
        else if (!event || !recorder_passes_over(r, event->id))
                r->n_left_out++;
        if (r->has_failed) /* the writer counts what comes behind */
                return;
        end_round(r);
        recorder_rotate(r);
}

/* What no LOST of the kernel has said. */
static void put_losses(Recorder *r, const perfd_end *end) {
        const RecorderId id = { .id = r->events[0]->id };
        uint64_t n = 0;

        for (size_t i = 0; i < end->n_lost; i++)
                if (strcmp(end->lost[i].reason, "probe_missed") != 0 && strcmp(end->lost[i].reason, "side_records") != 0)
                        n += end->lost[i].count;
        if (n <= r->n_lost)
                return;
        n -= r->n_lost;
        recorder_check(r, recorder_put_record(r, PERF_RECORD_LOST_SAMPLES, 0, &n, sizeof(n), RECORDER_NO_TEXT, &id));
}

static void on_end(void *userdata, const perfd_end *end) {
        Recorder *r = userdata;

        progress_end(&r->progress);
        if (!r->has_failed)
                put_losses(r, end);
        stream_loop_end(&r->loop, end, r->n_samples, "samples");
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        ((Recorder *)userdata)->n_dropped += gap->items;
}

static void show_progress(const Recorder *r) {
        char size[QUANTITY_SIZE];

        progress_show_text(&r->progress, "recording: %" PRIu64 " samples, %s, %" PRIu64 " lost", r->n_samples,
                           quantity_show_size(perfd_recording_writer_size(r->writer), size), r->n_lost + r->n_dropped);
}

static uint64_t on_tick(void *userdata, uint64_t now) {
        Recorder *r = userdata;

        if (now - r->flushed < FLUSH || r->has_failed)
                return r->flushed + FLUSH > now ? r->flushed + FLUSH : now + FLUSH;
        recorder_check(r, perfd_recording_writer_flush(r->writer));
        r->flushed = now;
        recorder_rotate(r);
        if (!r->has_failed)
                show_progress(r);
        return now + FLUSH;
}

/* ---- from begin to end ------------------------------------------------------------------------------------------------------------ */

static void recorder_deinit(Recorder *r) {
        perfd_recording_writer_free(r->writer);
        recorder_state_free(r->state);
        others_free(r->others);
        free(r->named);
        recorder_files_deinit(&r->files);
        build_ids_deinit(&r->build_ids);
        recorder_free_events(r);
        formats_deinit(&r->formats);
        free(r->pids);
        free(r->remote.name);
        free(r->remote.kernel);
        kernel_functions_deinit(&r->functions);
        task_names_deinit(&r->remote.tasks);
        proc_tasks_deinit(&r->early);
        proc_tasks_deinit(&r->here);
}

/* What is sampled at a rate has few samples if it ran for a short time; of what has none, the options may choose nothing. */
static void advise(const Recorder *r) {
        static const char *const targets[] = { "filter", "pid", "tid", "cgroup", "container", "unit", "cpu", "target" };
        const perfd_recorded_event *e = &r->events[0]->event;
        const char *chosen = NULL;
        size_t n;

        for (size_t i = 0; i < sizeof(targets) / sizeof(*targets) && !chosen; i++)
                if (perfctl_get(r->p, targets[i]) || (perfctl_get_all(r->p, targets[i], &n), n > 0))
                        chosen = targets[i];
        if (r->n_samples >= FEW || r->n_lost + r->n_dropped > 0)
                return;
        if (r->n_samples == 0 && chosen)
                (void)perfctl_fail(r->p, PERFCTL_OK, "no sample: nothing that --%s chooses has run or happened meanwhile", chosen);
        else if (r->n_events == 1 && (e->flags & PERFD_ATTR_FREQ))
                (void)perfctl_fail(r->p, PERFCTL_OK, "few samples: %s was sampled %" PRIu64 " times a second while what is recorded ran: -F %s takes more",
                                   e->name, e->sample_period, e->sample_period < RATE_OF_COMMANDS ? "999" : "9999");
        else if (r->n_events == 1 && e->sample_period > 1)
                (void)perfctl_fail(r->p, PERFCTL_OK, "few samples: one for each %" PRIu64 " of %s: a smaller --period takes more", e->sample_period, e->name);
        else if (r->n_samples == 0)
                (void)perfctl_fail(r->p, PERFCTL_OK, "no sample: none of the events has happened meanwhile");
}

/* In the file it is said as far as it had room for that. */
static void say_unwritten(const Recorder *r) {
        const uint64_t n = perfd_recording_writer_n_unwritten(r->writer);

        if (n > 0)
                (void)perfctl_fail(r->p, PERFCTL_FAILED, "%" PRIu64 " of %" PRIu64 " samples that came are missing, because they could not be written",
                                   n, r->n_samples);
}

/* A stream that failed has a recording up to there. */
static int end_files(Recorder *r, int code) {
        int left_out;

        if (r->n_events == 0)
                return code;
        recorder_close(r);
        if (r->is_closed)
                return PERFCTL_OK;
        if (r->has_failed) {
                say_unwritten(r);
                return PERFCTL_FAILED;
        }
        advise(r);
        left_out = r->n_left_out == 0 ? 0 : perfctl_fail(r->p, PERFCTL_LOST, "%s lacks %" PRIu64 " items: they are longer than a record can "
                                                         "be, or of no event that was announced", r->files.path, r->n_left_out);
        return code == 0 ? left_out : code;
}

/* The chain and the attr of each event, as far as one word says them. */
static perfd_event_spec asked_of_all(const Perfctl *p) {
        const char *text = perfctl_get(p, "callchain");
        perfd_event_spec spec = PERFD_EVENT_SPEC_INIT;

        spec.attr = perfctl_get_all(p, "attr", &spec.n_attr);
        if (text && strstr(text, "dwarf"))
                spec.callchain = PERFD_CALLCHAIN_DWARF;
        else if (text || perfctl_get(p, "both-callchains"))
                spec.callchain = PERFD_CALLCHAIN_BOTH;
        return spec;
}

/* In the handler of a second signal. */
static void say_part(void) {
        static const char text[] = "perfctl: record: ended at once: what was written is in the file whose name ends in .part-XXXXXX, for info --repair\n";

        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

int recorder_run(Perfctl *p, const perfd_subscription *subscription, const RecorderFiles *files, uint64_t duration, bool may_lose) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Recorder r = { .p = p, .files = *files, .named = must_have(calloc(1, sizeof(PidSet))),
                       .asked = asked_of_all(p),
                       .loop = { .p = p, .duration = duration, .may_lose = may_lose, .is_full = is_full, .tick = on_tick } };
        bool has_begun;
        int code;

        pid_set_add(r.named, 0); /* the idle threads, which readers know */
        code = signals_catch(p, p->command != NULL); /* before there is a file that somebody has to end */

        if (code == 0 && strcmp(files->path, "-") != 0)
                signals_set_last(say_part);
        if (code == 0)
                code = recorder_open(&r);
        r.loop.userdata = &r;
        progress_begin_text(&r.progress);
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        if (code == 0 && !p->host && !perfctl_get(p, "pid"))
                proc_tasks_read(&r.early, recorder_unwinds(&r));
        if (code == 0)
                code = stream_loop_run(&r.loop, subscription, &callbacks, recorder_choose);
        progress_end(&r.progress); /* of a stream that was lost */
        has_begun = perfd_recording_writer_size(r.writer) > 0;
        if (has_begun)
                code = end_files(&r, code);
        else if (r.has_failed)
                code = PERFCTL_FAILED;
        recorder_deinit(&r);
        signals_set_last(NULL);
        return code;
}
