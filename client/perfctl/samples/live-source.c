/*
 * The stream of the verb's events. Where none is named it is the time that programs take, which every machine can sample; and what is added for
 * names is added with callchains.
 */
#include "client/perfctl/samples/live-source.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/command-line/command.h"
#include "client/perfctl/command-line/event-options.h"
#include "client/perfctl/names/live-names.h"
#include "client/perfctl/recorder/recorder.h"
#include "client/perfctl/stream/stream-loop.h"
#include "client/perfctl/command-line/stream-options.h"

#define DEFAULT_FREQUENCY "999" /* Hz: not in step with what a program does each ms, or each 10 ms */

typedef struct Live {
        StreamLoop loop;
        Perfctl *p;
        const SampleSource *source;
        FrameNames *names;        /* NULL: without, or not yet */
        bool has_chains;          /* of any event, when the stream began */
        const perfd_event *last;  /* of which `name` is */
        const char *name;
        uint64_t taken;
        bool is_over;
} Live;

static bool is_over(const void *userdata) {
        return ((const Live *)userdata)->is_over;
}

/* ---- events ----------------------------------------------------------------------------------------------------------------------- */

static const Option *option_of(const Perfctl *p, const char *name) {
        const Option *o = p->verb->options;

        while (o->name && strcmp(o->name, name) != 0)
                o++;
        if (!o->name)
                abort(); /* its table lacks SAMPLE_SOURCE_OPTIONS */
        return o;
}

static bool is_given(const Perfctl *p, const char *name) {
        const Option *o = option_of(p, name);

        for (size_t i = 0; i < p->n_event_options; i++)
                if (p->event_options[i].option == o)
                        return true;
        return false;
}

static void give(Perfctl *p, const char *name, const char *value) {
        perfctl_set(p, name, value);
        (void)event_option_add(p, option_of(p, name), value); /* it is not there yet, and so applies to all events */
}

static void name_default(Perfctl *p) {
        static char cpu_clock[] = "cpu-clock";
        static char *words[] = { cpu_clock };

        p->argument_places = must_have(reallocarray(p->argument_places, 1, sizeof(*p->argument_places)));
        p->argument_places[0] = p->n_events++;
        p->arguments = words;
        p->n_arguments = 1;
        if (!is_given(p, "period") && !is_given(p, "frequency"))
                give(p, "frequency", DEFAULT_FREQUENCY);
}

/* Of words that all run already, nothing is added: they have the callchains that they have. */
static int runs(const Perfctl *p, bool *ret) {
        EventWords words = EVENT_WORDS_NULL;
        int r = 0;

        event_words_take_all(&words, p);
        *ret = true;
        for (size_t i = 0; r == 0 && *ret && i < words.n; i++) {
                perfd_result *list = NULL;
                const int code = perfd_list(p->client, words.names[i], &list);

                if (code != 0 && code != PERFD_E_REFUSED) /* refused: it is what others call an event, or unknown, which the stream says */
                        r = perfctl_fail_client(p, NULL);
                *ret = code == 0 && perfd_result_event(list, 0);
                perfd_result_free(list);
        }
        event_words_deinit(&words);
        return r;
}

static int choose_events(Perfctl *p, const SampleSource *s) {
        bool is_running = false;
        int r = 0;

        if (p->n_events == 0)
                name_default(p);
        else if (!spec_options_given(p) && !p->command)
                r = runs(p, &is_running);
        if (r == 0 && s->has_names && !is_running && !is_given(p, "callchain") && !is_given(p, "both-callchains"))
                give(p, "both-callchains", "");
        return r;
}

/* ---- the stream ------------------------------------------------------------------------------------------------------------------- */

static int choose(void *userdata, const EventWords *words, perfd_subscription *subscription) {
        Live *l = userdata;
        const int r = l->source->has_names ? live_names_any_callchain(l->p, words, &l->has_chains) : 0;

        stream_loop_ask_clock(&l->loop);
        if (l->has_chains)
                subscription->records |= LIVE_NAMES_RECORDS;
        return r;
}

static void on_start(void *userdata, const perfd_start *start) {
        Live *l = userdata;

        stream_loop_set_clock(&l->loop, start);
        if (l->source->has_names)
                l->names = live_names_new(l->p, start, l->has_chains && !l->loop.lacks_records, l->source->has_inlined);
        if (l->names && l->source->frames_max > 0)
                frame_names_set_max(l->names, l->source->frames_max);
        if (l->loop.lacks_records)
                (void)perfctl_fail(l->p, PERFCTL_OK, LIVE_NAMES_LACK_RECORDS);
}

static void on_event(void *userdata, const perfd_event *event) {
        Live *l = userdata;
        perfd_recorded_event e = { .name = typed_names_find(&l->loop.typed, event->name), .type = UINT32_MAX };

        l->last = NULL;
        if (!l->source->event)
                return;
        if (!recorder_event_find(event->event, &e))
                e.type = UINT32_MAX;
        l->source->event(l->source->userdata, &e);
}

static void take(Live *l, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);
        SourceSample sample = { .item = item, .weight = perfd_item_period(item) };

        if (event != l->last) {
                l->last = event;
                l->name = typed_names_find(&l->loop.typed, event->name);
        }
        sample.event = l->name;
        if (sample.weight == 0)
                sample.weight = event->period > 0 ? event->period : 1;
        (void)perfd_stream_wall(l->p->client, perfd_item_time(item), &sample.wall, NULL); /* cannot fail: the stream has started */
        if (l->names) {
                sample.n_frames = (l->source->has_chains_only ? frame_names_of_callchain : frame_names_of)(l->names, item, &sample.frames);
                sample.frames_number = frame_names_number(l->names);
        }
        l->taken++;
        l->is_over = !l->source->take(l->source->userdata, &sample);
}

static void on_item(void *userdata, const perfd_item *item) {
        Live *l = userdata;

        if (!stream_loop_takes(&l->loop, item) || l->is_over)
                return;
        if (perfd_item_record(item) == PERFD_SAMPLE) {
                take(l, item);
                return;
        }
        if (l->names)
                live_names_feed(l->names, item);
        if (perfd_item_record(item) == PERFD_LOST || perfd_item_record(item) == PERFD_LOST_SAMPLES)
                l->loop.loss.ring += perfd_item_lost(item);
        if (l->source->item)
                l->source->item(l->source->userdata, item);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        Live *l = userdata;

        l->loop.loss.dropped += gap->items;
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        Live *l = userdata;

        (void)id;
        l->last = NULL;
        removed_events_add(&l->loop.removed, name);
}

static void on_end(void *userdata, const perfd_end *end) {
        Live *l = userdata;

        if (l->source->end)
                l->source->end(l->source->userdata);
        stream_loop_end(&l->loop, end, l->taken, "samples");
}

static uint64_t on_tick(void *userdata, uint64_t now) {
        const Live *l = userdata;

        return l->source->tick(l->source->userdata, now);
}

int live_source_run(Perfctl *p, const SampleSource *s) {
        perfd_subscription subscription = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Live l = { .p = p, .source = s,
                   .loop = { .p = p, .duration = p->command ? 0 : s->duration, .may_lose = perfctl_get(p, "allow-loss"), .is_full = is_over,
                             .loss.advice = "a lower --frequency, or --filter, makes them fewer",
                             .tick = s->tick ? on_tick : NULL } };
        int r = command_check(p);

        l.loop.userdata = &l;
        subscription.where = s->where;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        if (r == 0)
                r = stream_options_parse(p, &subscription, &l.loop.duration);
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = choose_events(p, s);
        if (r == 0)
                r = stream_loop_run(&l.loop, &subscription, &callbacks, choose);
        frame_names_free(l.names);
        return r;
}
