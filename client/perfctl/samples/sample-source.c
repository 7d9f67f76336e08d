/* Each record tells the symbolizer what it says of memory before the next sample is named. */
#include "client/perfctl/samples/sample-source.h"

#include <elf.h>
#include <endian.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/samples/choice.h"
#include "client/perfctl/names/debuginfod.h"
#include "client/perfctl/samples/live-or-file.h"
#include "client/perfctl/samples/live-source.h"
#include "client/perfctl/names/recorded-host.h"
#include "client/perfctl/names/symbol-cache.h"
#include "client/perfctl/samples/recording-counts.h"

#define KERNEL_RECORDS 64 /* those behind are perf's own */
#define BUILD_ID 67       /* PERF_RECORD_HEADER_BUILD_ID */

#include "client/perfctl/print/progress.h"

/* What is the same for all samples of an event. */
typedef struct ReadEvent {
        bool is_wanted;
        bool has_frames; /* a callchain, or a copy of the stack to find one */
        uint64_t weight; /* of a sample that does not say its own */
} ReadEvent;

typedef struct Reading {
        Perfctl *p;
        const SampleSource *source;
        perfd_recording *recording;
        FrameNames *names; /* NULL: without */
        int64_t wall_offset; /* ns */
        bool has_wall, is_begun; /* the recording says it; a sample has come, and so all that a pipe says of itself */
        ReadEvent *events; /* by their index */
        size_t n_events;
        uint64_t lost;
        uint64_t n_left_out, n_taken; /* samples that are not chosen, and those that are */
        bool is_over;
        Progress progress;
} Reading;

static bool is_one_of(const char *word, const char *const *words) {
        for (; words && *words; words++)
                if (strcmp(*words, word) == 0)
                        return true;
        return false;
}

/* What users of perf-report(1) meant by a letter is said, too. */
static int refuse(const Perfctl *p, const char *name) {
        const bool is_report = strcmp(p->verb->name, "report") == 0;

        return perfctl_fail(p, PERFCTL_USAGE, "--%s is for the live host: not with --input%s", name,
                            is_report && strcmp(name, "frequency") == 0 ? "; --sort chooses columns" :
                            is_report && strcmp(name, "period") == 0 ? "; --comm chooses threads" : "");
}

int sample_source_check(const Perfctl *p, const char *const *means) {
        static const Option live[] = { SAMPLE_SOURCE_OPTIONS };

        if (stray_recording_check(p) != 0)
                return PERFCTL_USAGE;
        if (!perfctl_get(p, "input"))
                return 0;
        for (size_t i = 0; i < sizeof(live) / sizeof(*live); i++)
                if (!is_one_of(live[i].name, means) &&
                    (live[i].repeats ? perfctl_get_values(p, live[i].name)->n > 0 : perfctl_get(p, live[i].name) != NULL))
                        return refuse(p, live[i].name);
        if (p->n_event_options > 0 && !is_one_of(p->event_options[0].option->name, means))
                return refuse(p, p->event_options[0].option->name);
        return p->command ? perfctl_fail(p, PERFCTL_USAGE, "a command is traced live: not with --input") : 0;
}

static bool is_asked_for(const Perfctl *p, const char *name) {
        for (size_t i = 0; i < p->n_arguments; i++)
                if (fnmatch(p->arguments[i], name, 0) == 0)
                        return true;
        return p->n_arguments == 0;
}

static ReadEvent read_event(const Perfctl *p, const perfd_recorded_event *e) {
        return (ReadEvent){ .is_wanted = is_asked_for(p, e->name),
                            .has_frames = (e->sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)) != 0,
                            .weight = (e->flags & PERFD_ATTR_FREQ) == 0 && e->sample_period > 0 ? e->sample_period : 1 };
}

/* Of a pipe they come one by one. */
static void look_at_events(Reading *r) {
        for (const perfd_recorded_event *e; (e = perfd_recording_event(r->recording, r->n_events)); r->n_events++) {
                r->events = must_have(reallocarray(r->events, r->n_events + 1, sizeof(*r->events)));
                r->events[r->n_events] = read_event(r->p, e);
                if (r->events[r->n_events].is_wanted && r->source->event)
                        r->source->event(r->source->userdata, e);
        }
}

/* The event of an item is that of perfd_recording_event(id - 1). */
static const ReadEvent *event_of(Reading *r, uint32_t id) {
        if (id > r->n_events)
                look_at_events(r);
        return &r->events[id - 1];
}

static void note_stacks(const Reading *r, uint32_t machine) {
        const bool is_swapped = (perfd_recording_byte_order(r->recording) == PERFD_BIG_ENDIAN) != (BYTE_ORDER == BIG_ENDIAN);
        const perfd_recorded_event *e;

        if (!is_swapped && machine != EM_NONE)
                return;
        for (size_t i = 0; (e = perfd_recording_event(r->recording, i)); i++)
                if (e->sample_type & PERF_SAMPLE_STACK_USER) {
                        (void)perfctl_fail(r->p, PERFCTL_OK, "%s: copies of user stacks (--call-graph dwarf) are unwound of x86-64 and arm64 only, and "
                                           "these are of another machine: callchains lack the callers in user space", r->source->input);
                        return;
                }
}

/*
 * Before the first record of the kernel: what a pipe says of its host comes before that. Build ids and names of what ran here are right for a
 * recording of this host since it was started: what does not fit has no name.
 */
static FrameNames *names_of(Reading *r) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        char cache[PATH_MAX];

        if (r->names || !r->source->has_names)
                return r->names;
        options.build_ids = r->source->build_ids;
        options.has_lines = r->source->has_inlined;
        options.is_remote = recorded_host_is_another(r->recording);
        debuginfod_set_options(r->p, &options);
        symbol_cache_set_options(&options, cache);
        r->names = frame_names_new(&options);
        if (r->source->frames_max > 0)
                frame_names_set_max(r->names, r->source->frames_max);
        frame_names_set_machine(r->names, recorded_machine(r->recording));
        note_stacks(r, recorded_machine(r->recording));
        return r->names;
}

static uint64_t wall_of(Reading *r, uint64_t time) {
        if (!r->is_begun)
                r->has_wall = recorded_wall_offset(r->recording, &r->wall_offset);
        r->is_begun = true;
        return r->has_wall ? time + (uint64_t)r->wall_offset : 0;
}

/* What has none need not be asked for it. */
static void name_frames(Reading *r, const ReadEvent *e, const perfd_event *shown, SourceSample *sample) {
        if (e->has_frames && !r->source->has_no_chains) {
                sample->n_frames = (r->source->has_chains_only ? frame_names_of_callchain : frame_names_of)(names_of(r), sample->item, &sample->frames);
                sample->frames_number = frame_names_number(r->names);
        } else if (!r->source->has_chains_only)
                sample->n_frames = frame_names_of_place(names_of(r), sample->item, &sample->frames);
        if (r->source->has_places && sample->n_frames == 0 && shown->n_fields == 0) {
                sample->n_frames = frame_names_of_place(names_of(r), sample->item, &sample->frames);
                sample->is_place = true;
        }
}

static void take(Reading *r, const perfd_item *item) {
        const perfd_event *shown = perfd_item_event(item);
        const ReadEvent *e = event_of(r, shown->id);
        SourceSample sample = { .item = item, .event = shown->name, .event_number = shown->id };

        if (!e->is_wanted)
                return;
        if (r->source->choice && !sample_choice_takes(r->source->choice, item, sample.event)) {
                r->n_left_out++;
                return;
        }
        r->n_taken++;
        sample.weight = perfd_item_period(item);
        if (sample.weight == 0) /* a fixed period is in no sample */
                sample.weight = e->weight;
        sample.wall = wall_of(r, perfd_item_time(item));
        if (r->source->has_names)
                name_frames(r, e, shown, &sample);
        r->is_over = !r->source->take(r->source->userdata, &sample);
}

static void take_record(Reading *r, const perfd_recorded *record) {
        r->lost += recorded_losses(r->recording, record);
        if (r->source->has_names && (record->type < KERNEL_RECORDS || record->type == BUILD_ID))
                frame_names_feed(names_of(r), r->recording, record);
        if (r->source->record)
                r->source->record(r->source->userdata, r->recording, record);
}

static int read_all(Reading *r) {
        const perfd_recorded *record;
        const perfd_item *item;
        int code = 0;

        while (!r->is_over && (code = perfd_recording_next(r->recording, &record)) == 0) {
                const bool is_sample = record->type == PERF_RECORD_SAMPLE;

                progress_show(&r->progress, record->offset);
                code = perfd_recording_item(r->recording, record, &item);
                if (code == 0 && is_sample)
                        take(r, item);
                else if (code != 0 && code != PERFD_E_INVALID)
                        break;
                else if (!is_sample)
                        take_record(r, record);
        }
        look_at_events(r); /* those without a sample */
        progress_end(&r->progress); /* before messages */
        return r->is_over || code == PERFD_E_ENDED ?
                       0 : perfctl_fail(r->p, PERFCTL_FAILED, "%s: %s", r->source->input, perfd_recording_error(r->recording));
}

/* An argument that is none of its events has no samples, and was meant otherwise. */
static int check_arguments(const Reading *r) {
        const Perfctl *p = r->p;
        int code = 0;

        for (size_t i = 0; i < p->n_arguments; i++) {
                const perfd_recorded_event *e;
                size_t k = 0;

                while ((e = perfd_recording_event(r->recording, k)) && fnmatch(p->arguments[i], e->name, 0) != 0)
                        k++;
                if (!e)
                        code = perfctl_fail(p, PERFCTL_FAILED, "%s: no event of it is called '%s': perfctl info lists them", r->source->input,
                                            p->arguments[i]);
        }
        return code;
}

/* The kernel calls the threads of idle CPUs swapper/0 and so on, and perf all of them swapper. */
void sample_source_tell_none(const Perfctl *p, const char *input, uint64_t n_samples) {
        const char *comm = perfctl_get(p, "comm"), *at = comm ? strstr(comm, "swapper") : NULL;
        const bool is_idle = at && (at == comm || at[-1] == ',') && (at[7] == '\0' || at[7] == ',');

        (void)perfctl_fail(p, PERFCTL_OK, "%s: none of its %" PRIu64 " samples is one that the options choose%s%s%s%s", input ? input : "the live host",
                           n_samples, !comm ? "" : is_idle ? ": threads of idle CPUs are called 'swapper/*'" : ": `perfctl report",
                           comm && !is_idle && input ? " -i " : "", comm && !is_idle && input ? input : "",
                           comm && !is_idle ? " --sort comm` shows the names of its threads" : "");
}

/* What was not read, and what was lost. */
static int tell_end(const Reading *r) {
        const uint64_t n = perfd_recording_damage_count(r->recording), kept = perfd_recording_n_damages(r->recording);

        for (size_t i = 0; i < kept; i++) {
                const perfd_damage *d = perfd_recording_damage(r->recording, i);

                (void)perfctl_fail(r->p, PERFCTL_FAILED, "%s: at byte %" PRIu64 ": %s", r->source->input, d->offset, d->text);
        }
        if (n > kept)
                (void)perfctl_fail(r->p, PERFCTL_FAILED, "%s: %" PRIu64 " more places are damaged", r->source->input, n - kept);
        if (r->lost > 0)
                (void)perfctl_fail(r->p, PERFCTL_OK, "%s: %" PRIu64 " records are missing: the kernel had no room for them, or did not write them",
                                   r->source->input, r->lost);
        if (r->n_taken == 0 && r->n_left_out > 0)
                sample_source_tell_none(r->p, r->source->input, r->n_left_out);
        return n > 0 ? PERFCTL_FAILED : PERFCTL_OK;
}

static int read_recording(Perfctl *p, const SampleSource *s) {
        Reading r = { .p = p, .source = s, .recording = must_have(perfd_recording_new()) };
        int code = perfd_recording_set_order(r.recording, s->order);

        if (code == 0)
                code = perfd_recording_open(r.recording, s->input);
        if (code != 0) {
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: %s", s->input, perfd_recording_error(r.recording));
                rotated_files_tell(p, s->input);
        } else {
                look_at_events(&r);
                if (s->has_progress)
                        progress_begin(&r.progress, s->input);
                code = s->choice ? sample_choice_begin(s->choice, p, r.recording, s->input) : 0;
                if (code == 0)
                        code = read_all(&r);
                if (code == 0)
                        code = tell_end(&r);
                if (check_arguments(&r) != 0)
                        code = PERFCTL_FAILED;
                if (s->end)
                        s->end(s->userdata);
        }
        frame_names_free(r.names);
        free(r.events);
        perfd_recording_free(r.recording);
        return code;
}

int sample_source_run(Perfctl *p, const SampleSource *s) {
        return s->input ? read_recording(p, s) : live_source_run(p, s);
}
