/*
 * Each sample becomes what Perfetto draws best: switches of CPUs its scheduling, other tracepoints instants of the thread with their fields,
 * and samples of counters and clocks profiles, for which an instant has nothing to say. A tracepoint with a callchain is both.
 */
#include "client/perfctl/export/export.h"

#include <endian.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/perfetto.h"

#define NAME_ROOM ((size_t)256)
#define FLAG_INHERIT (UINT64_C(1) << 1) /* in perfd_recorded_event.flags, as in perf_event.h */
#define FLAG_USE_CLOCKID (UINT64_C(1) << 25)
#define OSRELEASE_BIT 4 /* of the features of perf.data */
#define ARCH_BIT 6
#define CLOCK_DATA_BIT 29
#define KNOWN(task) ((task) == UINT32_MAX ? 0 : (task)) /* -1 is the number of a task that is nearly gone */

typedef enum Role { ROLE_NEW, ROLE_SWITCH, ROLE_WAKEUP, ROLE_INSTANT, ROLE_PROFILE } Role;

/* What becomes of the samples of an event. */
typedef struct EventRole {
        Role role;
        PerfettoWakeup wakeup;
        size_t fields[7]; /* where those of `switch_fields` or `wakeup_fields` are */
} EventRole;

typedef struct Exporter {
        Perfctl *p;
        FILE *out;
        perfd_recording *recording; /* NULL: no record has come yet but samples */
        const perfd_recorded_event *first;
        PerfettoWriter *w;
        EventRole *roles; /* of the event with that id */
        size_t n_roles;
        PerfettoField *fields;
        char **texts; /* of fields, NULL or malloc */
        size_t fields_room;
        PerfettoFrame *frames;
        size_t frames_room;
        uint64_t n_samples;
        bool has_failed; /* no memory */
} Exporter;

/* The machine that was recorded, and the clocks' distance there. */
typedef struct Machine {
        char release[NAME_ROOM], machine[NAME_ROOM];
        uint64_t time, wall;
        char *to; /* where the next text goes */
} Machine;

static PerfettoText text_of(perfd_text text) {
        return (PerfettoText){ .bytes = text.bytes, .n = text.length };
}

static PerfettoText string_of(const char *string) {
        return (PerfettoText){ .bytes = string, .n = strlen(string) };
}

/* ---- where it was recorded ------------------------------------------------------------------------------------------------------- */

static void on_key(void *userdata, const char *key) {
        (void)userdata, (void)key;
}

static void on_end(void *userdata) {
        (void)userdata;
}

static void on_text(void *userdata, const char *key, perfd_text text) {
        Machine *m = userdata;

        (void)key;
        if (m->to)
                (void)snprintf(m->to, NAME_ROOM, "%.*s", (int)(text.length < NAME_ROOM ? text.length : NAME_ROOM - 1), text.bytes);
}

static void on_bytes(void *userdata, const char *key, perfd_text text) {
        (void)userdata, (void)key, (void)text;
}

static void on_number(void *userdata, const char *key, uint64_t number) {
        Machine *m = userdata;

        if (key && strcmp(key, "wall_clock_ns") == 0)
                m->wall = number;
        else if (key && strcmp(key, "clockid_time_ns") == 0)
                m->time = number;
}

static void on_flag(void *userdata, const char *key, bool is) {
        (void)userdata, (void)key, (void)is;
}

static const perfd_feature_visitor visitor = { on_key, on_end, on_key, on_end, on_text, on_number, on_bytes, on_flag };

static void read_feature(Exporter *x, unsigned bit, Machine *m, char *to) {
        m->to = to;
        if (x->recording && perfd_recording_has_feature(x->recording, bit))
                (void)perfd_recording_visit_feature(x->recording, bit, &visitor, m); /* what is damaged there is said at the end */
}

/* The clock of perf where none was asked for stands still in suspend, as CLOCK_MONOTONIC does. */
static PerfettoClock clock_of(const perfd_recorded_event *e) {
        static const PerfettoClock clocks[] = { [0] = PERFETTO_CLOCK_REALTIME, [1] = PERFETTO_CLOCK_MONOTONIC, [4] = PERFETTO_CLOCK_MONOTONIC_RAW,
                                                [7] = PERFETTO_CLOCK_BOOTTIME };
        const bool is_given = e && (e->flags & FLAG_USE_CLOCKID) != 0 && e->clockid >= 0 && (size_t)e->clockid < sizeof(clocks) / sizeof(*clocks);

        return is_given && clocks[e->clockid] != 0 ? clocks[e->clockid] : PERFETTO_CLOCK_MONOTONIC;
}

static void begin(Exporter *x, uint64_t time) {
        Machine m = { .to = NULL };
        PerfettoOrigin origin = { .clock = clock_of(x->first), .system = "Linux" };

        read_feature(x, OSRELEASE_BIT, &m, m.release);
        read_feature(x, ARCH_BIT, &m, m.machine);
        read_feature(x, CLOCK_DATA_BIT, &m, NULL);
        origin.time = m.wall > 0 ? m.time : time;
        origin.wall = m.wall;
        origin.release = m.release[0] ? m.release : NULL;
        origin.machine = m.machine[0] ? m.machine : NULL;
        x->w = must_have(perfetto_new(x->out, &origin));
}

/* ---- events ---------------------------------------------------------------------------------------------------------------------- */

enum { PREV_COMM, PREV_PID, PREV_PRIO, PREV_STATE, NEXT_COMM, NEXT_PID, NEXT_PRIO, N_SWITCH };
enum { COMM, PID, PRIO, TARGET_CPU, N_WAKEUP };

static const char *const switch_fields[N_SWITCH] = { "prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio" };
static const char *const wakeup_fields[N_WAKEUP] = { "comm", "pid", "prio", "target_cpu" };

/* False: the kernel that was recorded has others. */
static bool find_fields(const perfd_event *e, const char *const *names, size_t n, size_t *ret) {
        for (size_t i = 0; i < n; i++) {
                const bool is_text = strstr(names[i], "comm") != NULL;
                size_t k = 0;

                while (k < e->n_fields && (strcmp(e->fields[k].name, names[i]) != 0 || (e->fields[k].kind == PERFD_TEXT) != is_text ||
                                           (!is_text && (e->fields[k].count != 1 || e->fields[k].kind > PERFD_SIGNED))))
                        k++;
                if (k == e->n_fields)
                        return false;
                ret[i] = k;
        }
        return true;
}

static EventRole role_of(const perfd_event *e) {
        static const struct {
                const char *name;
                PerfettoWakeup wakeup;
        } wakeups[] = { { "sched:sched_wakeup", PERFETTO_WAKEUP }, { "sched:sched_waking", PERFETTO_WAKING }, { "sched:sched_wakeup_new", PERFETTO_WAKEUP_NEW } };
        EventRole r = { .role = e->n_fields > 0 || strchr(e->event, ':') ? ROLE_INSTANT : ROLE_PROFILE };

        if (strcmp(e->event, "sched:sched_switch") == 0 && find_fields(e, switch_fields, N_SWITCH, r.fields))
                r.role = ROLE_SWITCH;
        for (size_t i = 0; i < sizeof(wakeups) / sizeof(*wakeups); i++)
                if (strcmp(e->event, wakeups[i].name) == 0 && find_fields(e, wakeup_fields, N_WAKEUP, r.fields)) {
                        r.role = ROLE_WAKEUP;
                        r.wakeup = wakeups[i].wakeup;
                }
        return r;
}

static const EventRole *find_role(Exporter *x, const perfd_event *e) {
        if (e->id >= x->n_roles) {
                const size_t n = 2 * (size_t)e->id + 1;

                x->roles = must_have(reallocarray(x->roles, n, sizeof(*x->roles)));
                memset(x->roles + x->n_roles, 0, (n - x->n_roles) * sizeof(*x->roles));
                x->n_roles = n;
        }
        if (x->roles[e->id].role == ROLE_NEW)
                x->roles[e->id] = role_of(e);
        return &x->roles[e->id];
}

/* ---- switches -------------------------------------------------------------------------------------------------------------------- */

static int64_t number_of(const perfd_item *item, size_t field) {
        perfd_value v;

        return perfd_item_get(item, field, &v) && v.count > 0 ? (int64_t)v.numbers[0] : 0;
}

static PerfettoText comm_of(const perfd_item *item, size_t field) {
        perfd_value v;

        return perfd_item_get(item, field, &v) ? text_of(v.text) : (PerfettoText){ .n = 0 };
}

static int put_switch(Exporter *x, const PerfettoMoment *m, const EventRole *r, const perfd_item *item) {
        const size_t *f = r->fields;
        const PerfettoSide previous = { .tid = (int32_t)number_of(item, f[PREV_PID]), .prio = (int32_t)number_of(item, f[PREV_PRIO]), .comm = comm_of(item, f[PREV_COMM]) };
        const PerfettoSide next = { .tid = (int32_t)number_of(item, f[NEXT_PID]), .prio = (int32_t)number_of(item, f[NEXT_PRIO]), .comm = comm_of(item, f[NEXT_COMM]) };

        return perfetto_put_switch(x->w, m, &previous, number_of(item, f[PREV_STATE]), &next);
}

static int put_wakeup(Exporter *x, const PerfettoMoment *m, const EventRole *r, const perfd_item *item) {
        const size_t *f = r->fields;
        const PerfettoSide woken = { .tid = (int32_t)number_of(item, f[PID]), .prio = (int32_t)number_of(item, f[PRIO]), .comm = comm_of(item, f[COMM]) };

        return perfetto_put_wakeup(x->w, m, r->wakeup, &woken, (int32_t)number_of(item, f[TARGET_CPU]));
}

/* ---- instants -------------------------------------------------------------------------------------------------------------------- */

static char **text_at(Exporter *x, size_t i) {
        if (i >= x->fields_room) {
                const size_t n = 2 * i + 16;

                x->fields = must_have(reallocarray(x->fields, n, sizeof(*x->fields)));
                x->texts = must_have(reallocarray(x->texts, n, sizeof(*x->texts)));
                memset(x->texts + x->fields_room, 0, (n - x->fields_room) * sizeof(*x->texts));
                x->fields_room = n;
        }
        free(x->texts[i]);
        x->texts[i] = NULL;
        return &x->texts[i];
}

/* As people read it. */
static PerfettoText rendered(char **text, const perfd_value *v) {
        const size_t n = perfd_value_render(v, NULL, 0);

        *text = must_have(malloc(n + 1));
        (void)perfd_value_render(v, *text, n + 1);
        return (PerfettoText){ .bytes = *text, .n = n };
}

static PerfettoKind kind_of(const perfd_field *f) {
        switch (f->kind) {
        case PERFD_SIGNED:
                return PERFETTO_SIGNED;
        case PERFD_BOOL:
                return PERFETTO_BOOL;
        case PERFD_POINTER:
                return PERFETTO_POINTER;
        default:
                return f->hex ? PERFETTO_POINTER : PERFETTO_UNSIGNED;
        }
}

static void put_field(Exporter *x, size_t i, const perfd_value *v) {
        const perfd_field *f = v->field;
        char **text = text_at(x, i);
        PerfettoField *to = &x->fields[i];

        *to = (PerfettoField){ .name = string_of(f->name) };
        if (f->kind == PERFD_TEXT || f->kind == PERFD_BYTES) {
                to->kind = PERFETTO_TEXT;
                to->text = f->kind == PERFD_BYTES || v->fault ? rendered(text, v) : text_of(v->text);
                return;
        }
        to->kind = kind_of(f);
        to->is_list = f->count != 1;
        to->numbers = v->numbers;
        to->n_numbers = v->count;
        if (f->n_values > 0 && f->count == 1 && perfd_field_render(f, v->numbers[0], NULL, 0) > 0)
                to->called = rendered(text, v);
}

/* Beside those of the format: what the attr asked for. */
static size_t put_parts(Exporter *x, size_t n, const perfd_item *item, uint64_t numbers[static 3]) {
        static const char *const names[] = { "ip", "address", "period" };

        numbers[0] = perfd_item_ip(item);
        numbers[1] = perfd_item_address(item);
        numbers[2] = perfd_item_period(item) > 1 ? perfd_item_period(item) : 0; /* 1 says nothing */
        for (size_t i = 0; i < 3; i++)
                if (numbers[i] > 0) {
                        (void)text_at(x, n);
                        x->fields[n++] = (PerfettoField){ .name = string_of(names[i]), .kind = i < 2 ? PERFETTO_POINTER : PERFETTO_UNSIGNED,
                                                          .numbers = &numbers[i], .n_numbers = 1 };
                }
        return n;
}

static int put_instant(Exporter *x, const PerfettoMoment *m, const SourceSample *sample, size_t n_frames) {
        const char *event = perfd_item_event(sample->item)->event, *colon = strchr(event, ':');
        const PerfettoText category = { .bytes = event, .n = colon ? (size_t)(colon - event) : 0 };
        uint64_t numbers[3];
        perfd_value v;
        size_t n = 0;

        for (; perfd_item_get(sample->item, n, &v); n++)
                put_field(x, n, &v);
        if (perfd_item_has_more(sample->item))
                n = put_parts(x, n, sample->item, numbers);
        return perfetto_put_instant(x->w, m, category, string_of(sample->event), x->fields, n, x->frames, n_frames);
}

/* ---- profiles and counters ------------------------------------------------------------------------------------------------------- */

static size_t take_frames(Exporter *x, const SourceSample *sample) {
        if (sample->n_frames > x->frames_room) {
                x->frames_room = 2 * sample->n_frames;
                x->frames = must_have(reallocarray(x->frames, x->frames_room, sizeof(*x->frames)));
        }
        for (size_t i = 0; i < sample->n_frames; i++) {
                const NamedFrame *f = &sample->frames[i];

                x->frames[i] = (PerfettoFrame){ .key = f->name, .symbol = text_of(f->name->symbol), .dso = text_of(f->name->dso),
                                                .build_id = text_of(f->name->build_id), .address = f->address, .is_kernel = f->is_kernel };
        }
        return sample->n_frames;
}

static int put_profile(Exporter *x, const PerfettoMoment *m, const SourceSample *sample, size_t n_frames) {
        const perfd_event *e = perfd_item_event(sample->item);
        const PerfettoEvent event = { .number = e->id, .name = sample->event, .period = e->period, .frequency = e->frequency };

        return perfetto_put_sample(x->w, m, &event, x->frames, n_frames);
}

/* In a group, those behind it are its members, as perf writes events. */
static void name_counter(const Exporter *x, const perfd_event *e, size_t i, char name[static NAME_ROOM]) {
        const perfd_recorded_event *member = x->recording ? perfd_recording_event(x->recording, e->id - 1 + i) : NULL;

        if (i < e->n_counters)
                (void)snprintf(name, NAME_ROOM, "%s", e->counters[i].event);
        else if (i == 0 || member)
                (void)snprintf(name, NAME_ROOM, "%s", i == 0 ? e->name : member->name);
        else
                (void)snprintf(name, NAME_ROOM, "%s[%zu]", e->name, i);
}

static int put_counters(Exporter *x, const PerfettoMoment *m, const perfd_item *item, const perfd_recorded_event *attr) {
        const perfd_event *e = perfd_item_event(item);
        const perfd_read_value *values;
        const size_t n = perfd_item_read(item, &values);
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                const bool is_scaled = values[i].running < values[i].enabled;
                const double scale = i < e->n_counters ? e->counters[i].scale : 1;
                char name[NAME_ROOM];
                PerfettoCounter c = { .unit = string_of(i < e->n_counters ? e->counters[i].unit : i == 0 ? e->unit : ""),
                                      .is_of_cpu = attr && (attr->flags & FLAG_INHERIT) == 0 && m->cpu != PERFETTO_NO_CPU,
                                      .is_whole = !is_scaled && scale == 1,
                                      .value = values[i].value };

                if (is_scaled && values[i].running == 0)
                        continue; /* not counted, which is not 0 */
                name_counter(x, e, i, name);
                c.name = string_of(name);
                c.number = (double)values[i].value * scale * (is_scaled ? (double)values[i].enabled / (double)values[i].running : 1);
                r = perfetto_put_counter(x->w, m, &c);
        }
        return r;
}

/* ---- each in its turn ------------------------------------------------------------------------------------------------------------ */

/* Not the ip alone, which all samples of perf have. */
static bool has_callchain(const perfd_item *item) {
        const uint64_t *addresses;

        return perfd_item_has_more(item) && (perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &addresses) > 0 ||
                                             perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &addresses) > 0 ||
                                             perfd_item_user_stack(item).length > 0);
}

static int put(Exporter *x, const SourceSample *sample) {
        const perfd_item *item = sample->item;
        const perfd_event *e = perfd_item_event(item);
        const perfd_recorded_event *attr = x->recording ? perfd_recording_event(x->recording, e->id - 1) : NULL;
        const EventRole *role = find_role(x, e);
        const bool has_cpu = !attr || (attr->sample_type & PERF_SAMPLE_CPU) != 0;
        const PerfettoMoment m = { .time = perfd_item_time(item),
                                   .cpu = has_cpu ? perfd_item_cpu(item) : PERFETTO_NO_CPU,
                                   .task = { .pid = KNOWN(perfd_item_pid(item)), .tid = KNOWN(perfd_item_tid(item)), .comm = text_of(perfd_item_comm(item)) } };
        const bool is_drawn = (role->role == ROLE_SWITCH || role->role == ROLE_WAKEUP) && m.cpu < PERFETTO_CPUS_MAX;
        const size_t n_frames = role->role == ROLE_PROFILE || has_callchain(item) ? take_frames(x, sample) : 0;
        int r = 0;

        if (is_drawn)
                r = role->role == ROLE_SWITCH ? put_switch(x, &m, role, item) : put_wakeup(x, &m, role, item);
        else if (role->role != ROLE_PROFILE || n_frames == 0)
                r = put_instant(x, &m, sample, n_frames);
        if (r == 0 && n_frames > 0)
                r = put_profile(x, &m, sample, n_frames);
        return r == 0 && perfd_item_has_more(item) ? put_counters(x, &m, item, attr) : r;
}

static bool take(void *userdata, const SourceSample *sample) {
        Exporter *x = userdata;

        if (!x->w)
                begin(x, perfd_item_time(sample->item));
        x->n_samples++;
        if (put(x, sample) < 0)
                x->has_failed = true;
        return !x->has_failed && !ferror(x->out);
}

static void take_event(void *userdata, const perfd_recorded_event *event) {
        Exporter *x = userdata;

        if (!x->first)
                x->first = event;
}

static uint32_t u32_at(const Exporter *x, const uint8_t *at) {
        uint32_t n;

        memcpy(&n, at, sizeof(n));
        return perfd_recording_byte_order(x->recording) == PERFD_BIG_ENDIAN ? be32toh(n) : le32toh(n);
}

static uint64_t u64_at(const Exporter *x, const uint8_t *at) {
        uint64_t n;

        memcpy(&n, at, sizeof(n));
        return perfd_recording_byte_order(x->recording) == PERFD_BIG_ENDIAN ? be64toh(n) : le64toh(n);
}

/* COMM: pid, tid, name. */
static int put_comm(Exporter *x, const perfd_recorded *record) {
        const uint8_t *bytes = record->bytes;
        PerfettoTask task;

        if (record->size <= 8)
                return 0;
        task = (PerfettoTask){ .pid = u32_at(x, bytes), .tid = u32_at(x, bytes + 4), .comm = { .bytes = (const char *)bytes + 8, .n = strnlen((const char *)bytes + 8, record->size - 8) } };
        return perfetto_put_task(x->w, &task);
}

/* LOST: of an fd, LOST_SAMPLES: of the buffer. */
static int put_lost(Exporter *x, const perfd_recorded *record) {
        const size_t at = record->type == PERF_RECORD_LOST ? 8 : 0;
        perfd_recorded_id id;

        if (record->size < at + 8 || perfd_recording_id(x->recording, record, &id) != 0)
                return 0; /* its damage is said at the end */
        return perfetto_put_lost(x->w, &(PerfettoMoment){ .time = id.time, .cpu = (id.has & PERF_SAMPLE_CPU) != 0 ? id.cpu : PERFETTO_NO_CPU },
                                 u64_at(x, (const uint8_t *)record->bytes + at));
}

static void take_record(void *userdata, perfd_recording *r, const perfd_recorded *record) {
        Exporter *x = userdata;
        int code = 0;

        x->recording = r;
        if (!x->w && (record->type == PERF_RECORD_COMM || record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)) {
                perfd_recorded_id id = { .time = 0 };

                (void)perfd_recording_id(r, record, &id);
                begin(x, id.time);
        }
        if (record->type == PERF_RECORD_COMM)
                code = put_comm(x, record);
        else if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
                code = put_lost(x, record);
        x->has_failed = x->has_failed || code < 0;
}

static int finish(Exporter *x, const char *input, int code, bool *ret_is_whole) {
        int r;

        if (x->has_failed)
                return perfctl_fail(x->p, PERFCTL_FAILED, "%s", strerror(ENOMEM));
        if (x->n_samples == 0)
                return perfctl_fail(x->p, PERFCTL_FAILED, "%s: it has no samples%s", input, x->p->n_arguments > 0 ? " of these events" : "");
        r = perfetto_finish(x->w);
        if (r != 0)
                return perfctl_fail(x->p, PERFCTL_FAILED, "%s", strerror(-r));
        *ret_is_whole = true;
        return code;
}

int export_perfetto(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        Exporter x = { .p = p, .out = out };
        int code;

        source.has_names = true;
        source.order = PERFD_RECORDING_ORDER_TIME;
        source.userdata = &x;
        source.take = take;
        source.event = take_event;
        source.record = take_record;
        code = sample_source_run(p, &source);
        if (code == PERFCTL_OK || x.n_samples > 0)
                code = finish(&x, source.input, code, ret_is_whole);
        perfetto_free(x.w);
        for (size_t i = 0; i < x.fields_room; i++)
                free(x.texts[i]);
        free(x.texts);
        free(x.fields);
        free(x.frames);
        free(x.roles);
        return code;
}
