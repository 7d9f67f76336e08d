/*
 * The events of a recording: what the daemon has of the words, and what it says of each. They are known before the stream begins, but for those
 * that are added meanwhile.
 */
#include "client/perfctl/recorder/recorder.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/recorder/host-sections.h"
#include "client/perfctl/events/running-events.h"
#include "client/perfctl/recorder/user-stack.h"

RecorderEvent *recorder_find_event(const Recorder *r, uint32_t id) {
        for (size_t i = 0; i < r->n_events; i++)
                if (r->events[i]->id == id)
                        return r->events[i];
        return NULL;
}

void recorder_free_events(Recorder *r) {
        for (size_t i = 0; i < r->n_events; i++) {
                free(r->events[i]->name);
                free(r->events[i]);
        }
        free(r->events);
        free(r->passed);
}

bool recorder_unwinds(const Recorder *r) {
        bool does = r->asked.callchain & PERFD_CALLCHAIN_DWARF;

        for (size_t i = 0; i < r->asked.n_attr; i++)
                does = does || strstr(r->asked.attr[i], "stack-user");
        for (size_t i = 0; i < r->n_events; i++)
                does = does || (r->events[i]->event.sample_type & PERF_SAMPLE_STACK_USER) != 0;
        return does;
}

/* "uprobe:libc:malloc" */
static bool is_probe(const char *event) {
        static const char *const kinds[] = { "kprobe:", "kretprobe:", "uprobe:", "uretprobe:", "usdt:" };

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strncmp(event, kinds[i], strlen(kinds[i])) == 0)
                        return true;
        return false;
}

static void take_format(const char *event, const perfd_event_format *f, perfd_recorded_event *ret) {
        ret->type = f->type;
        ret->config = f->config;
        ret->config1 = f->config1;
        ret->config2 = f->config2;
        ret->bp_type = f->bp_type;
        if (f->type == PERF_TYPE_TRACEPOINT)
                ret->sample_type = PERF_SAMPLE_RAW;
        if (!is_probe(event))
                recorder_event_modifiers(event, ret);
}

/*
 * What raw bytes and copies of stacks are, is said by a machine alone: a recording has one byte order, and registers have the numbers of one
 * architecture.
 */
static int check_host(const Recorder *r, const RecorderEvent *e) {
        const perfd_format_host *host = formats_host(&r->formats);

        if (host->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
                return perfctl_fail(r->p, PERFCTL_FAILED, "%s is a host of the other byte order (%s): record it on a host of its own byte order",
                                    r->p->host ? r->p->host : "the daemon's", host->machine);
        if ((e->event.sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)) && !user_stack_is_of(host->machine))
                return perfctl_fail(r->p, PERFCTL_FAILED, "%s: copies of the stacks of another architecture (%s) cannot be recorded here: record them there",
                                    e->name, host->machine);
        return 0;
}

/* Of those that nobody has named: whoever adds one must not end the recordings of others. It is said once. */
static void pass_over(Recorder *r, uint32_t id, const char *name, const char *event) {
        if (r->n_passed == 0)
                (void)perfctl_fail(r->p, PERFCTL_OK, "%s: %s is not recorded: recordings have events that the kernel samples one by one, and no external "
                                   "events or groups, of which no more is said", name, event);
        r->passed = must_have(reallocarray(r->passed, r->n_passed + 1, sizeof(*r->passed)));
        r->passed[r->n_passed++] = id;
}

bool recorder_passes_over(const Recorder *r, uint32_t id) {
        for (size_t i = 0; i < r->n_passed; i++)
                if (r->passed[i] == id)
                        return true;
        return false;
}

/* spec: how it was added; with a frequency above 0, it is sampled by it. Of what is not known by now the daemon says why. 0, or an exit status after
 * a message. */
static int add_event(Recorder *r, uint32_t id, const char *name, const char *event, const perfd_event_spec *spec, bool is_named) {
        const perfd_event_format *format = formats_find(&r->formats, id);
        RecorderEvent *e;
        char left_out[128];
        int code;

        if (!format || recorder_find_event(r, id) || recorder_passes_over(r, id))
                return 0;
        if (!format->has_attr && !is_named) {
                pass_over(r, id, name, event);
                return 0;
        }
        if (!format->has_attr)
                return perfctl_fail(r->p, PERFCTL_FAILED, "%s: %s cannot be recorded: recordings have events that the kernel samples one by one, and no "
                                    "external events or groups", name, event);
        e = must_have(calloc(1, sizeof(*e)));
        *e = (RecorderEvent){ .id = id, .ids = { id }, .name = must_have(strdup(typed_names_find(&r->loop.typed, name))), .format = format };
        r->events = must_have(reallocarray(r->events, r->n_events + 1, sizeof(*r->events)));
        r->events[r->n_events++] = e;
        take_format(event, format, &e->event);
        e->event.name = e->name;
        e->event.ids = e->ids;
        e->event.n_ids = 1;
        e->event.sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
        if (spec->callchain != 0) /* which begins at that place */
                e->event.sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
        /* That of a tracepoint is always the same: perfd asks for it of a probe alone, where its arguments do not tell what happened. */
        if (e->event.type != PERF_TYPE_TRACEPOINT || (is_probe(event) && !(spec->args && spec->args[0])))
                e->event.sample_type |= PERF_SAMPLE_IP;
        user_stack_of_event(&e->event, spec);
        if (user_stack_leaves_out(spec, left_out, sizeof(left_out)))
                (void)perfctl_fail(r->p, PERFCTL_OK, "%s: of the parts that its sample-type asks for, the recording leaves out %s", name, left_out);
        e->event.flags |= PERFD_ATTR_SAMPLE_ID_ALL | (spec->frequency > 0 ? PERFD_ATTR_FREQ : 0);
        e->event.sample_period = spec->frequency > 0 ? spec->frequency : spec->period > 0 ? spec->period : 1;
        code = check_host(r, e);
        if (code == 0 && r->has_begun)
                recorder_check(r, perfd_recording_writer_add_event(r->writer, &e->event));
        return code == 0 && r->has_failed ? PERFCTL_FAILED : code;
}

/* Where its fallback is counted it is that, and is called so, unless it was given a name. */
static int add_row(Recorder *r, const perfd_event_row *row, bool is_named) {
        const perfd_event_spec *s = row->spec;
        const char *event = row->fallen_back ? s->fallback : s->event, *machine = r->p->host ? "that machine" : "this machine";
        const char *name = row->fallen_back && strcmp(typed_names_find(&r->loop.typed, s->name), s->event) == 0 ? event : s->name;

        if (r->files.is_default && !recorder_find_event(r, row->id))
                (void)perfctl_fail(r->p, PERFCTL_OK, "no event was named: this records %s%s%s%s", event, row->fallen_back ? ", as " : "",
                                   row->fallen_back ? machine : "", row->fallen_back ? " does not count cycles" : "");
        else if (row->fallen_back && !recorder_find_event(r, row->id))
                (void)perfctl_fail(r->p, PERFCTL_OK, "%s: %s does not count cycles: this records %s instead", s->event, machine, event);
        return add_event(r, row->id, name, event, s, is_named);
}

static int ask_for_formats(Recorder *r, const perfd_result *list) {
        const perfd_event_row *row;
        uint32_t *ids;
        size_t n = 0;
        int code;

        while (perfd_result_event(list, n))
                n++;
        ids = must_have(calloc(n + 1, sizeof(*ids)));
        n = 0;
        for (size_t i = 0; (row = perfd_result_event(list, i)); i++)
                if (row->id > 0)
                        ids[n++] = row->id;
        code = formats_ask(&r->formats, r->p, ids, n);
        free(ids);
        return code;
}

static int add_running(Recorder *r, const char *word) {
        perfd_result *list = NULL;
        const perfd_event_row *row;
        int code = 0;

        if (perfd_list(r->p->client, word, &list) != 0)
                return perfctl_fail_client(r->p, NULL);
        code = ask_for_formats(r, list);
        for (size_t i = 0; code == 0 && (row = perfd_result_event(list, i)); i++)
                if (row->id > 0)
                        code = add_row(r, row, word && !running_is_glob(word));
        perfd_result_free(list);
        return code;
}

int recorder_choose(void *userdata, const EventWords *words, perfd_subscription *subscription) {
        Recorder *r = userdata;
        int code;

        (void)subscription;
        if (r->p->host && !r->remote.wall.is_known)
                r->remote.wall = host_wall_ask(r->p);
        code = words->n == 0 ? add_running(r, NULL) : 0;
        for (size_t i = 0; i < words->n && code == 0; i++)
                code = add_running(r, words->names[i]);
        if (code == 0 && r->n_events == 0 && words->n == 0)
                code = perfctl_fail(r->p, PERFCTL_FAILED, "none of the events runs: name those to be added");
        return code; /* of a glob perhaps nothing runs: then it is refused, added, and this is called again */
}

void recorder_add_late(Recorder *r, const perfd_event *e) {
        perfd_event_spec spec = r->asked;
        const RecorderEvent *added;

        if (r->has_failed || recorder_find_event(r, e->id))
                return;
        spec.period = e->period;
        spec.frequency = e->frequency;
        if (formats_ask_late(&r->formats, r->p, e->id) != 0 || add_event(r, e->id, e->name, e->event, &spec, false) != 0)
                r->has_failed = true;
        added = r->has_failed ? NULL : recorder_find_event(r, e->id);
        if (added && *added->format->tracepoint)
                host_sections_put_tracing(r); /* perf(1) opens no recording that lacks a format */
}
