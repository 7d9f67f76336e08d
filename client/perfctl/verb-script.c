/* Samples of a recording in the order of the file, each as `watch` would print it. */
#include <endian.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/item-print.h"
#include "client/perfctl/perfctl.h"

typedef struct Script {
        Perfctl *p;
        perfd_recording *recording;
        const char *path;
        ItemText text;
        Kallsyms symbols;
        ItemPlans plans;
        size_t n_events; /* whose names the columns have room for */
        uint64_t lost;
} Script;

static bool is_wanted(const Perfctl *p, const perfd_item *item) {
        for (size_t i = 0; i < p->n_arguments; i++)
                if (fnmatch(p->arguments[i], perfd_item_event(item)->name, 0) == 0)
                        return true;
        return p->n_arguments == 0;
}

static void add_events(Script *s) {
        for (const perfd_recorded_event *e; (e = perfd_recording_event(s->recording, s->n_events)); s->n_events++)
                item_text_add_event(&s->text, e->name);
}

static void put(Script *s, const perfd_item *item) {
        if (!is_wanted(s->p, item))
                return;
        add_events(s);
        if (s->p->json)
                item_print_json(&s->p->out, &s->plans, item, 0, false);
        else
                item_print_text(&s->text, item);
}

/* Both begin with a number; LOST has that of an fd before it. */
static void add_lost(Script *s, const perfd_recorded *record) {
        const size_t at = record->type == PERF_RECORD_LOST ? sizeof(uint64_t) : 0;
        uint64_t n;

        if (record->size < at + sizeof(n))
                return;
        memcpy(&n, (const uint8_t *)record->bytes + at, sizeof(n));
        s->lost += perfd_recording_byte_order(s->recording) == PERFD_BIG_ENDIAN ? be64toh(n) : le64toh(n);
}

static int read_all(Script *s) {
        const perfd_recorded *record;
        const perfd_item *item;
        int code;

        while (!s->p->out.error && (code = perfd_recording_next(s->recording, &record)) == 0) {
                const bool is_sample = record->type == PERF_RECORD_SAMPLE;

                if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
                        add_lost(s, record);
                code = perfd_recording_item(s->recording, record, &item);
                if (code == 0 && is_sample)
                        put(s, item);
                else if (code != 0 && code != PERFD_E_INVALID)
                        break;
        }
        return s->p->out.error || code == PERFD_E_ENDED ?
                       0 : perfctl_fail(s->p, PERFCTL_FAILED, "%s: %s", s->path, perfd_recording_error(s->recording));
}

/* What was not read, and what was lost. */
static int tell_end(const Script *s) {
        const uint64_t n = perfd_recording_damage_count(s->recording), kept = perfd_recording_n_damages(s->recording);

        for (size_t i = 0; i < kept; i++) {
                const perfd_damage *d = perfd_recording_damage(s->recording, i);

                (void)perfctl_fail(s->p, PERFCTL_FAILED, "%s: at byte %" PRIu64 ": %s", s->path, d->offset, d->text);
        }
        if (n > kept)
                (void)perfctl_fail(s->p, PERFCTL_FAILED, "%s: %" PRIu64 " more places are damaged", s->path, n - kept);
        if (s->lost > 0)
                (void)perfctl_fail(s->p, PERFCTL_OK, "%s: the kernel had no room for %" PRIu64 " records, which are missing", s->path, s->lost);
        return n > 0 ? PERFCTL_FAILED : PERFCTL_OK;
}

static int script_run(Perfctl *p) {
        const char *input = perfctl_get(p, "input");
        Script s = { .p = p,
                     .recording = must_have(perfd_recording_new()),
                     .path = input ? input : "perf.data",
                     .text = { .out = &p->out, .time.form = TIME_CLOCK, .is_padded = p->human },
                     .plans = { .form = p->json ? ITEM_FORM_JSON : ITEM_FORM_TEXT, .has_frames = true } };
        int code;

        s.text.symbols = &s.symbols;
        s.text.plans = p->human ? NULL : &s.plans;
        if (perfd_recording_open(s.recording, s.path) != 0)
                code = perfctl_fail(p, PERFCTL_FAILED, "%s: %s", s.path, perfd_recording_error(s.recording));
        else {
                code = read_all(&s);
                if (code == 0)
                        code = tell_end(&s);
        }
        item_plans_deinit(&s.plans);
        kallsyms_deinit(&s.symbols);
        perfd_recording_free(s.recording);
        return code;
}

const Verb verb_script = {
        .name = "script",
        .arguments = "[EVENT...]",
        .help = "print the samples of a recording of perf",
        .options = { { .name = "input", .letter = 'i', .argument = "FILE", .help = "the recording; - is stdin; perf.data if it is not given",
                       .words = WORDS_FILES } },
        .max_arguments = VERB_ANY_NUMBER,
        .run = script_run,
};
