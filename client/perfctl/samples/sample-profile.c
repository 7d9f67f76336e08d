/*
 * A frame is looked up by its name's pointer and its address, a task by its tid: of a recording of ten million samples there are some
 * thousands of either, and each is given to the profile once.
 */
#include "client/perfctl/samples/sample-profile.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define BUILD_ID_TEXT (2 * 64 + 1)
#define COMM_MAX ((size_t)256)
#define NSEC_PER_SEC UINT64_C(1000000000)

typedef struct KnownFrame {
        const FrameName *name; /* NULL: free */
        uint64_t address;
        uint32_t id;
} KnownFrame;

typedef struct KnownTask {
        char *comm; /* NULL: free */
        char container[65];
        uint32_t pid, tid, id;
} KnownTask;

/* A stack of the profile, by the number that its frames have in the source. */
typedef struct KnownStack {
        uint64_t number; /* 0: free */
        uint32_t task, id;
} KnownStack;

#define N_KNOWN_STACKS ((size_t)1 << 14) /* a power of two */

#define N_KNOWN_TASKS ((size_t)1 << 10) /* by tid: two of them take turns, and each is found again by the profile */

struct SampleProfile {
        Perfctl *p;
        Profile *profile;
        char *events[PROFILE_VALUES_MAX]; /* names; the first is of the samples */
        ProfileValue values[PROFILE_VALUES_MAX];
        size_t n_values;
        bool has_more_events; /* than there are values */
        bool calls_by_thread; /* a sample without frames has one */
        KnownFrame *known; /* open addressing, a power of two */
        size_t n_known, known_room;
        KnownTask tasks[N_KNOWN_TASKS];
        KnownStack stacks[N_KNOWN_STACKS];
        uint32_t ids[PROFILE_DEPTH_MAX + 1];
        uint64_t first_time, last_time; /* of the recording's clock; last_time 0: no sample has come */
        int status;
};

SampleProfile *sample_profile_new(Perfctl *p, const char *value, const char *unit) {
        SampleProfile *s = must_have(calloc(1, sizeof(*s)));

        s->p = p;
        s->values[s->n_values++] = (ProfileValue){ .name = value, .unit = unit };
        s->known_room = 1024;
        s->known = must_have(calloc(s->known_room, sizeof(*s->known)));
        return s;
}

void sample_profile_call_by_thread(SampleProfile *s) {
        s->calls_by_thread = true;
}

SampleProfile *sample_profile_free(SampleProfile *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n_values; i++)
                free(s->events[i]);
        for (size_t i = 0; i < N_KNOWN_TASKS; i++)
                free(s->tasks[i].comm);
        free(s->known);
        profile_free(s->profile);
        free(s);
        return NULL;
}

Profile *sample_profile_get(const SampleProfile *s) {
        return s->profile;
}

bool sample_profile_has_failed(const SampleProfile *s) {
        return s->status != 0;
}

const char *sample_profile_error(int code) {
        switch (code) {
        case PROFILE_E_TOO_DEEP:
                return "a stack has more than 4096 frames";
        case PROFILE_E_TOO_MANY:
                return "there are more distinct stacks, frames or names than a profile may have; ask for fewer events";
        case PROFILE_E_TOO_LONG:
                return "a name has more than 65535 bytes";
        case PROFILE_E_OVERFLOW:
                return "a sum is larger than this format can say";
        case PROFILE_E_UNLIKE:
                return "both recordings have to have the same events, at most three: name those to compare";
        case PROFILE_E_NO_ID:
                return "a frame or a task is not known";
        default:
                return strerror(-code);
        }
}

bool sample_profile_check(SampleProfile *s, int code) {
        if (code != 0)
                s->status = perfctl_fail(s->p, PERFCTL_FAILED, "%s", sample_profile_error(code));
        return code == 0;
}

int sample_profile_end(SampleProfile *s, const char *input, int code) {
        if (s->profile)
                s->profile->duration_nsec = s->last_time - s->first_time;
        if (s->status == 0 && code == 0 && !s->profile)
                return perfctl_fail(s->p, PERFCTL_FAILED, "%s: it has no samples to add up%s", input ? input : "the live host", s->p->n_arguments > 0 ? " of these events" : "");
        return s->status != 0 ? s->status : code;
}

/* ---- values --------------------------------------------------------------------------------------------------------------------- */

static bool is_clock(const perfd_recorded_event *e) {
        return e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* A clock whose frequency was asked for ticks at an even rate: perf_swevent_init_hrtimer() of kernel/events/core.c */
static uint64_t period_of(const perfd_recorded_event *e) {
        if ((e->flags & PERFD_ATTR_FREQ) == 0)
                return e->sample_period;
        return is_clock(e) && e->sample_period > 0 ? NSEC_PER_SEC / e->sample_period : 0;
}

/* The values are those of the profile so far, and one more. */
static void add_value(SampleProfile *s, const perfd_recorded_event *e) {
        Profile *larger;

        s->events[s->n_values] = must_have(strdup(e->name));
        s->values[s->n_values] = (ProfileValue){ .name = s->events[s->n_values], .unit = is_clock(e) ? "nanoseconds" : "count",
                                                 .period = period_of(e) };
        s->n_values++;
        if (!s->profile)
                return;
        larger = must_have(profile_new(s->values, s->n_values));
        if (sample_profile_check(s, profile_append(larger, s->profile, 0))) {
                profile_free(s->profile);
                s->profile = larger;
                s->n_known = 0; /* ids are others now */
                memset(s->known, 0, s->known_room * sizeof(*s->known));
                memset(s->stacks, 0, sizeof(s->stacks));
                for (size_t i = 0; i < N_KNOWN_TASKS; i++) {
                        free(s->tasks[i].comm);
                        s->tasks[i].comm = NULL;
                }
        } else
                profile_free(larger);
}

static void add_event(void *userdata, const perfd_recorded_event *event) {
        SampleProfile *s = userdata;

        for (size_t i = 1; i < s->n_values; i++)
                if (strcmp(s->events[i], event->name) == 0)
                        return;
        if (s->n_values < PROFILE_VALUES_MAX)
                add_value(s, event);
        else if (!s->has_more_events) {
                s->has_more_events = true;
                (void)perfctl_fail(s->p, PERFCTL_OK, "more than %d events: of %s and those behind it only samples are counted; name events to "
                                   "choose others", PROFILE_VALUES_MAX - 1, event->name);
        }
}

static void fill_values(const SampleProfile *s, const SourceSample *sample, uint64_t values[static PROFILE_VALUES_MAX]) {
        memset(values, 0, s->n_values * sizeof(*values));
        values[0] = 1;
        for (size_t i = 1; i < s->n_values; i++)
                if (strcmp(s->events[i], sample->event) == 0)
                        values[i] = sample->weight;
}

/* ---- frames --------------------------------------------------------------------------------------------------------------------- */

static KnownFrame *slot_of(KnownFrame *known, size_t room, const FrameName *name, uint64_t address) {
        size_t at = (((uintptr_t)name >> 4) ^ address) * UINT64_C(0x9e3779b97f4a7c15) >> 20;

        for (;; at++) {
                KnownFrame *slot = &known[at & (room - 1)];

                if (!slot->name || (slot->name == name && slot->address == address))
                        return slot;
        }
}

static void grow_known(SampleProfile *s) {
        const size_t room = 2 * s->known_room;
        KnownFrame *known = must_have(calloc(room, sizeof(*known)));

        for (size_t i = 0; i < s->known_room; i++)
                if (s->known[i].name)
                        *slot_of(known, room, s->known[i].name, s->known[i].address) = s->known[i];
        free(s->known);
        s->known = known;
        s->known_room = room;
}

/* A text of a FrameName ends with a zero; NULL if it is empty. */
static const char *string_of(perfd_text text) {
        return text.length > 0 ? text.bytes : NULL;
}

static const char *build_id_text(perfd_text id, char text[static BUILD_ID_TEXT]) {
        static const char digits[] = "0123456789abcdef";
        size_t n = 0;

        for (; n < id.length && 2 * n + 2 < BUILD_ID_TEXT; n++) {
                text[2 * n] = digits[(uint8_t)id.bytes[n] >> 4];
                text[2 * n + 1] = digits[(uint8_t)id.bytes[n] & 15];
        }
        text[2 * n] = '\0';
        return n > 0 ? text : NULL;
}

static FrameKind kind_of(const NamedFrame *f) {
        return f->is_inlined ? FRAME_INLINED : f->is_kernel ? FRAME_KERNEL : FRAME_USER;
}

static int add_frame(SampleProfile *s, const NamedFrame *f, uint32_t *ret) {
        char build_id[BUILD_ID_TEXT], *unnamed = NULL;
        ProfileFrame frame = { .symbol = string_of(f->name->symbol), .dso = string_of(f->name->dso),
                               .build_id = build_id_text(f->name->build_id, build_id), .file = string_of(f->name->file),
                               .line = f->name->line, .address = f->address, .kind = kind_of(f) };
        int code;

        if (!frame.symbol)
                frame.symbol = unnamed = frame_name_of_file(f->name->dso);
        code = profile_add_frame(s->profile, &frame, ret);
        free(unnamed);
        return code;
}

static int find_frame(SampleProfile *s, const NamedFrame *f, uint32_t *ret) {
        const uint64_t key = f->address ^ (uint64_t)f->is_inlined << 63; /* a function may be inlined into itself */
        KnownFrame *slot = slot_of(s->known, s->known_room, f->name, key);
        int code = 0;

        if (!slot->name) {
                if (2 * (s->n_known + 1) > s->known_room) {
                        grow_known(s);
                        slot = slot_of(s->known, s->known_room, f->name, key);
                }
                code = add_frame(s, f, &slot->id);
                if (code == 0) {
                        slot->name = f->name;
                        slot->address = key;
                        s->n_known++;
                }
        }
        *ret = slot->id;
        return code;
}

/* ---- tasks ---------------------------------------------------------------------------------------------------------------------- */

static int find_task(SampleProfile *s, const perfd_item *item, uint32_t *ret) {
        const perfd_process *process = perfd_item_process(item);
        const perfd_text comm = perfd_item_comm(item);
        const char *container = process ? process->container : "";
        const uint32_t pid = perfd_item_pid(item), tid = perfd_item_tid(item);
        KnownTask *known = &s->tasks[tid & (N_KNOWN_TASKS - 1)];
        char text[COMM_MAX + 1];
        const size_t n = comm.length < COMM_MAX ? comm.length : COMM_MAX;
        ProfileTask task = { .comm = n > 0 ? text : NULL, .container = *container ? container : NULL, .pid = pid, .tid = tid };
        int code;

        if (n > 0)
                memcpy(text, comm.bytes, n);
        text[n] = '\0';
        if (known->comm && known->pid == pid && known->tid == tid && strcmp(known->comm, text) == 0 &&
            strncmp(known->container, container, sizeof(known->container) - 1) == 0) {
                *ret = known->id;
                return 0;
        }
        code = profile_add_task(s->profile, &task, ret);
        if (code != 0)
                return code;
        free(known->comm);
        *known = (KnownTask){ .comm = must_have(strdup(text)), .pid = pid, .tid = tid, .id = *ret };
        (void)strncpy(known->container, container, sizeof(known->container) - 1);
        return 0;
}

/* ---- samples -------------------------------------------------------------------------------------------------------------------- */

static void note_time(SampleProfile *s, uint64_t time) {
        if (s->last_time == 0 || time < s->first_time)
                s->first_time = time;
        if (time > s->last_time)
                s->last_time = time;
}

/* Of all but the frames. */
static int begin_sample(SampleProfile *s, const SourceSample *sample, uint32_t *ret_task) {
        note_time(s, perfd_item_time(sample->item));
        if (!s->profile)
                s->profile = must_have(profile_new(s->values, s->n_values));
        return sample->n_frames > PROFILE_DEPTH_MAX ? PROFILE_E_TOO_DEEP : find_task(s, sample->item, ret_task);
}

/* Into s->ids. */
static int find_frames(SampleProfile *s, const SourceSample *sample) {
        int code = 0;

        for (size_t i = 0; code == 0 && i < sample->n_frames; i++)
                code = find_frame(s, &sample->frames[sample->n_frames - 1 - i], &s->ids[i]);
        return code;
}

int sample_profile_find(SampleProfile *s, const SourceSample *sample, uint32_t *ret_task, uint32_t **ret_frames) {
        int code = begin_sample(s, sample, ret_task);

        *ret_frames = s->ids;
        return code == 0 ? find_frames(s, sample) : code;
}

static int add_frame_of_thread(SampleProfile *s, uint32_t task, uint32_t *ret) {
        const uint32_t comm = s->profile->tasks[task].comm;
        const ProfileFrame frame = { .symbol = comm == ID_NONE ? "[unknown]" : profile_string(s->profile, comm), .kind = FRAME_USER };

        return profile_add_frame(s->profile, &frame, ret);
}

static int find_stack(SampleProfile *s, const SourceSample *sample, uint32_t task, uint32_t *ret) {
        KnownStack *known = &s->stacks[(sample->frames_number ^ (uint64_t)task << 5) & (N_KNOWN_STACKS - 1)];
        const bool is_by_thread = s->calls_by_thread && sample->n_frames == 0;
        int code;

        if (sample->frames_number != 0 && known->number == sample->frames_number && known->task == task) {
                *ret = known->id;
                return 0;
        }
        code = is_by_thread ? add_frame_of_thread(s, task, s->ids) : find_frames(s, sample);
        if (code == 0)
                code = profile_add_stack(s->profile, task, s->ids, is_by_thread ? 1 : sample->n_frames, ret);
        if (code == 0)
                *known = (KnownStack){ .number = sample->frames_number, .task = task, .id = *ret };
        return code;
}

static bool take(void *userdata, const SourceSample *sample) {
        SampleProfile *s = userdata;
        uint64_t values[PROFILE_VALUES_MAX];
        uint32_t stack, task;
        int code = begin_sample(s, sample, &task);

        if (code == 0)
                code = find_stack(s, sample, task, &stack);
        if (code == 0) {
                fill_values(s, sample, values);
                code = profile_add_to(s->profile, stack, values, sample->wall);
        }
        return sample_profile_check(s, code);
}

int sample_profile_run(SampleProfile *s, SampleSource source) {
        source.has_names = true;
        source.order = PERFD_RECORDING_ORDER_TIME;
        source.userdata = s;
        source.take = take;
        source.event = add_event;
        return sample_profile_end(s, source.input, sample_source_run(s->p, &source));
}
