/* A frame refers to its function and its mapping, and a callstack to its frames, the outermost first: each is said when it comes first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/perfetto-packets.h"

enum { INTERNED_FUNCTION_NAMES = 5, INTERNED_FRAMES = 6, INTERNED_CALLSTACKS = 7, INTERNED_BUILD_IDS = 16, INTERNED_MAPPING_PATHS = 17, INTERNED_MAPPINGS = 19 };
enum { MAPPING_IID = 1, MAPPING_BUILD_ID = 2, MAPPING_PATH_STRING_IDS = 7 };
enum { FRAME_IID = 1, FRAME_FUNCTION_NAME_ID = 2, FRAME_MAPPING_ID = 3, FRAME_REL_PC = 4 };
enum { CALLSTACK_IID = 1, CALLSTACK_FRAME_IDS = 2 };
enum { SAMPLE_CPU = 1, SAMPLE_PID = 2, SAMPLE_TID = 3, SAMPLE_CALLSTACK_IID = 4, SAMPLE_CPU_MODE = 5, SAMPLE_KERNEL_RECORDS_LOST = 17 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };
enum { DEFAULTS_PERF_SAMPLE = 12, SAMPLE_TIMEBASE = 1, TIMEBASE_PERIOD = 1, TIMEBASE_FREQUENCY = 2, TIMEBASE_NAME = 10, DEFAULTS_CLOCK = 58 };

/* ---- names ---------------------------------------------------------------------------------------------------------------------- */

/* Perfetto puts a slash before each part of a path. */
static uint64_t mapping(PerfettoWriter *w, uint32_t sequence, const PerfettoFrame *f) {
        const bool has_slash = f->dso.n > 0 && f->dso.bytes[0] == '/';
        const PerfettoText path = { .bytes = f->dso.bytes + has_slash, .n = f->dso.n - has_slash };
        uint64_t key[2], number;
        size_t at;

        if (f->dso.n == 0)
                return 0;
        key[0] = perfetto_name(w, sequence, NAME_PATH, INTERNED_MAPPING_PATHS, path);
        key[1] = f->build_id.n > 0 ? perfetto_name(w, sequence, NAME_BUILD_ID, INTERNED_BUILD_IDS, f->build_id) : 0;
        if (!perfetto_number(w, sequence, NAME_MAPPING, key, sizeof(key), &number))
                return number;
        at = message_open(&w->interned, INTERNED_MAPPINGS);
        message_put_number(&w->interned, MAPPING_IID, number);
        if (key[1] > 0)
                message_put_number(&w->interned, MAPPING_BUILD_ID, key[1]);
        message_put_number(&w->interned, MAPPING_PATH_STRING_IDS, key[0]);
        message_close(&w->interned, at);
        return number;
}

static uint64_t frame(PerfettoWriter *w, uint32_t sequence, const PerfettoFrame *f) {
        uint64_t key[3], number;
        size_t at;

        key[0] = f->symbol.n > 0 ? perfetto_name(w, sequence, NAME_FUNCTION, INTERNED_FUNCTION_NAMES, f->symbol) : 0;
        key[1] = mapping(w, sequence, f);
        key[2] = f->address;
        if (!perfetto_number(w, sequence, NAME_FRAME, key, sizeof(key), &number))
                return number;
        at = message_open(&w->interned, INTERNED_FRAMES);
        message_put_number(&w->interned, FRAME_IID, number);
        if (key[0] > 0)
                message_put_number(&w->interned, FRAME_FUNCTION_NAME_ID, key[0]);
        if (key[1] > 0)
                message_put_number(&w->interned, FRAME_MAPPING_ID, key[1]);
        message_put_number(&w->interned, FRAME_REL_PC, f->address);
        message_close(&w->interned, at);
        return number;
}

/* By its key, without a look at its texts. */
static uint64_t known_frame(PerfettoWriter *w, uint32_t sequence, const PerfettoFrame *f) {
        PerfettoNames *names = &w->sequences[sequence].names;
        const uint64_t key[2] = { (uint64_t)(uintptr_t)f->key, f->address };
        uint64_t number;

        if (perfetto_names_find(names, NAME_FRAME_KEY, key, sizeof(key), &number))
                return number;
        number = frame(w, sequence, f);
        if (number == 0 || perfetto_names_add(names, NAME_FRAME_KEY, key, sizeof(key), number, &number) < 0)
                w->error = -ENOMEM;
        return number;
}

uint64_t perfetto_stack(PerfettoWriter *w, uint32_t sequence, const PerfettoFrame *frames, size_t n_frames) {
        uint64_t small[128], *numbers = small, number = 0;
        size_t at;

        if (n_frames == 0)
                return 0;
        if (n_frames > sizeof(small) / sizeof(*small))
                numbers = reallocarray(NULL, n_frames, sizeof(*numbers));
        if (!numbers) {
                w->error = -ENOMEM;
                return 0;
        }
        for (size_t i = 0; i < n_frames; i++)
                numbers[i] = known_frame(w, sequence, &frames[n_frames - 1 - i]);
        if (perfetto_number(w, sequence, NAME_CALLSTACK, numbers, n_frames * sizeof(*numbers), &number)) {
                at = message_open(&w->interned, INTERNED_CALLSTACKS);
                message_put_number(&w->interned, CALLSTACK_IID, number);
                for (size_t i = 0; i < n_frames; i++)
                        message_put_number(&w->interned, CALLSTACK_FRAME_IDS, numbers[i]);
                message_close(&w->interned, at);
        }
        if (numbers != small)
                free(numbers);
        return number;
}

/* ---- samples -------------------------------------------------------------------------------------------------------------------- */

static void put_defaults(PerfettoWriter *w, MessageWriter *m, const PerfettoEvent *e) {
        size_t sample, timebase;

        sample = message_open(m, DEFAULTS_PERF_SAMPLE);
        timebase = message_open(m, SAMPLE_TIMEBASE);
        if (e->frequency > 0)
                message_put_number(m, TIMEBASE_FREQUENCY, e->frequency);
        else if (e->period > 0)
                message_put_number(m, TIMEBASE_PERIOD, e->period);
        message_put_string(m, TIMEBASE_NAME, e->name, strlen(e->name));
        message_close(m, timebase);
        message_close(m, sample);
        message_put_number(m, DEFAULTS_CLOCK, w->origin.clock);
        if (m->has_failed)
                w->error = -ENOMEM;
}

static int find_sequence(PerfettoWriter *w, const PerfettoEvent *e) {
        if (e->number >= w->n_sequences) {
                size_t n = (size_t)e->number + 1;
                Sequence *grown = reallocarray(w->sequences, n, sizeof(*grown));

                if (!grown)
                        return w->error = -ENOMEM;
                for (size_t i = w->n_sequences; i < n; i++)
                        grown[i] = (Sequence){ .names.seed = w->seed };
                w->sequences = grown;
                w->n_sequences = n;
        }
        if (w->sequences[e->number].defaults.n == 0)
                put_defaults(w, &w->sequences[e->number].defaults, e);
        return w->error;
}

static void put_cpu(PerfettoWriter *w, const PerfettoMoment *m) {
        if (m->cpu != PERFETTO_NO_CPU)
                message_put_number(&w->packet, SAMPLE_CPU, m->cpu);
}

int perfetto_put_sample(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoEvent *event, const PerfettoFrame *frames, size_t n_frames) {
        uint64_t uuid, stack;
        size_t at;
        int r;

        perfetto_limit(w);
        r = find_sequence(w, event);
        if (r == 0 && m->task.tid != 0)
                r = perfetto_task_track(w, &m->task, &uuid);
        if (r < 0)
                return r;
        perfetto_begin_at(w, event->number, m->time);
        stack = perfetto_stack(w, event->number, frames, n_frames);
        at = message_open(&w->packet, PACKET_PERF_SAMPLE);
        put_cpu(w, m);
        message_put_number(&w->packet, SAMPLE_PID, m->task.pid);
        message_put_number(&w->packet, SAMPLE_TID, m->task.tid);
        if (stack > 0) {
                message_put_number(&w->packet, SAMPLE_CALLSTACK_IID, stack);
                message_put_number(&w->packet, SAMPLE_CPU_MODE, frames[0].is_kernel ? MODE_KERNEL : MODE_USER);
        }
        message_close(&w->packet, at);
        return perfetto_end(w);
}

int perfetto_put_lost(PerfettoWriter *w, const PerfettoMoment *m, uint64_t n) {
        size_t at;

        int r = m->cpu < PERFETTO_CPUS_MAX ? perfetto_lose(w, m->cpu) : 0;

        if (r < 0)
                return r;
        perfetto_limit(w);
        perfetto_begin_at(w, 0, m->time);
        at = message_open(&w->packet, PACKET_PERF_SAMPLE);
        put_cpu(w, m);
        message_put_number(&w->packet, SAMPLE_KERNEL_RECORDS_LOST, n);
        message_close(&w->packet, at);
        return perfetto_end(w);
}
