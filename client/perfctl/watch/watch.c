/* Items of a stream as they come: each is a line. */
#include "client/perfctl/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/gap.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/item/print.h"
#include "client/perfctl/names/live-names.h"
#include "client/perfctl/stream/stream-loop.h"

#define GAP_WAIT UINT64_C(1000000000) /* ns for an item to come that is behind the gap */
#define UNKNOWN_ERROR UINT64_C(16000000000) /* ns: what Linux says of a clock that nothing keeps: NTP_PHASE_LIMIT */

typedef struct Watch {
        StreamLoop loop;
        Perfctl *p;
        const WatchOptions *options;
        ItemText text;
        Kallsyms symbols;
        ItemPlans plans;
        FrameNames *names;   /* NULL: none of the events had a callchain when the stream began, or names are not wanted */
        bool has_callchains;
        uint64_t printed;
        uint64_t received, missed; /* items, and those of gaps */
        char missed_for[32]; /* the reason of the last one */
        uint64_t gap_due;    /* CLOCK_MONOTONIC: when Perfctl.gap is told at the latest; UINT64_MAX: it is, or there is none */
        uint64_t began;      /* CLOCK_REALTIME: the stream */
        int64_t wall_offset; /* when it began */
        uint64_t host_error; /* of its wall time, ns; UINT64_MAX: not known */
} Watch;

/* Nothing more is printed: it was enough, or nobody reads it. */
static bool is_full(const Watch *w) {
        return (w->options->count > 0 && w->printed == w->options->count) || w->p->out.error;
}

static bool is_enough(const void *userdata) {
        return is_full(userdata);
}

/* Names cost side records of the whole host: they are asked for only if there is something to name. */
static int choose(void *userdata, const EventWords *words, perfd_subscription *subscription) {
        Watch *w = userdata;
        const int r = live_names_any_callchain(w->p, words, &w->has_callchains);

        if (w->has_callchains)
                subscription->records |= LIVE_NAMES_RECORDS;
        return r;
}

static void begin_names(Watch *w, const perfd_start *s) {
        if (!w->has_callchains)
                return;
        w->names = live_names_new(w->p, s, !w->loop.lacks_records, false);
        if (w->loop.lacks_records)
                (void)perfctl_fail(w->p, PERFCTL_OK, LIVE_NAMES_LACK_RECORDS);
}

static void on_start(void *userdata, const perfd_start *s) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        if (!w->p->host)
                kallsyms_init(&w->symbols, s);
        begin_names(w, s);
        if (w->p->json)
                put_stream_start(&j, s, w->p->is_of_several);
        host_note(w->p, NOTE_START, "%s", s->host);
        w->wall_offset = s->wall_offset;
        w->began = clock_read(CLOCK_REALTIME);
        if (w->p->gap.why)
                w->gap_due = clock_read(CLOCK_MONOTONIC) + GAP_WAIT;
}

static void on_event(void *userdata, const perfd_event *event) {
        Watch *w = userdata;

        item_text_add_event(&w->text, event->name);
        item_plans_forget(&w->plans, event->id);
}

/* Wall time at a time of the stream, which lines that follow are from. 0, which is no time, has none. */
static uint64_t find_wall(Watch *w, uint64_t time, uint64_t *ret_error) {
        uint64_t wall = 0;

        *ret_error = 0;
        if (time > 0)
                (void)perfd_stream_wall(w->p->client, time, &wall, ret_error); /* cannot fail: the stream has started */
        w->text.time.wall_offset = (int64_t)(wall - time);
        *ret_error = *ret_error < UINT64_MAX - w->host_error ? *ret_error + w->host_error : UINT64_MAX;
        return wall;
}

static void end_item(Watch *w) {
        if (w->p->is_of_several)
                host_item_end(w->p);
}

/* What is missing of this host since its last stream, up to a time of this one. */
static void put_host_gap(Watch *w, uint64_t time, uint64_t to, uint64_t error) {
        HostGap gap = w->p->gap;

        gap.to = to > gap.from ? to : gap.from;
        w->gap_due = UINT64_MAX;
        if (!w->p->json)
                item_text_put_heading(&w->text);
        host_item_begin(w->p, gap.to, error);
        if (w->p->json)
                host_gap_put_json(&w->p->out, &gap);
        else
                host_gap_print_text(&w->text, time, &gap);
        end_item(w);
}

/* Nothing has come that it could stand before. */
static void put_host_gap_alone(Watch *w) {
        uint64_t time = w->began - (uint64_t)w->wall_offset;

        w->text.time.wall_offset = w->wall_offset;
        if (w->gap_due < UINT64_MAX)
                put_host_gap(w, time, w->began, UNKNOWN_ERROR);
}

static uint64_t on_tick(void *userdata, uint64_t now) {
        Watch *w = userdata;

        if (now >= w->gap_due)
                put_host_gap_alone(w);
        return w->gap_due;
}

/* Wall time of lines that follow, which begin an item. */
static uint64_t begin_item(Watch *w, uint64_t time) {
        uint64_t error, wall = find_wall(w, time, &error);

        if (!w->p->is_of_several)
                return wall;
        if (time > 0 && w->gap_due < UINT64_MAX)
                put_host_gap(w, time, wall, error);
        if (!w->p->json)
                item_text_put_heading(&w->text);
        host_item_begin(w->p, wall, error);
        return wall;
}

static void on_wall(void *userdata, const perfd_wall_reading *reading) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        w->host_error = reading->host_error > 0 ? reading->host_error : UINT64_MAX;
        if (w->p->json && !is_full(w))
                put_wall_reading(&j, reading);
        host_note(w->p, NOTE_WALL, "%" PRIu64, reading->wall);
}

/* What came for names alone is not printed. */
static bool is_for_names(const Watch *w, const perfd_item *item) {
        const perfd_record record = perfd_item_record(item);

        return (record == PERFD_COMM || record == PERFD_FORK || record == PERFD_EXIT || record == PERFD_MMAP2 || record == PERFD_KSYMBOL) &&
               (PERFD_RECORD_BIT(record) & w->options->subscription.records) == 0;
}

/* Of what is to be printed next. */
static void name_frames(Watch *w, const perfd_item *item) {
        const NamedFrame *frames = NULL;
        size_t n = 0;

        if (perfd_item_record(item) != PERFD_SAMPLE)
                live_names_feed(w->names, item);
        else if (perfd_item_has_more(item))
                n = frame_names_of_callchain(w->names, item, &frames);
        w->plans.frames = w->text.frames = frames;
        w->plans.n_frames = w->text.n_frames = n;
}

static void on_item(void *userdata, const perfd_item *item) {
        Watch *w = userdata;
        uint64_t wall;

        w->received++;
        stream_loop_look(&w->loop);
        if (is_full(w))
                return;
        if (w->names) {
                name_frames(w, item);
                if (is_for_names(w, item))
                        return;
        }
        if (perfd_item_record(item) == PERFD_LOST || perfd_item_record(item) == PERFD_LOST_SAMPLES)
                w->loop.loss.ring += perfd_item_lost(item);
        wall = begin_item(w, perfd_item_time(item));
        if (w->p->json)
                item_print_json(&w->p->out, &w->plans, item, wall, w->options->raw);
        else
                item_print_text(&w->text, item);
        end_item(w);
        w->printed++;
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        Watch *w = userdata;

        w->missed += gap->items;
        (void)snprintf(w->missed_for, sizeof(w->missed_for), "%s", gap->reason);
        if (is_full(w))
                return;
        w->loop.loss.dropped += gap->items;
        (void)begin_item(w, gap->from);
        if (w->p->json)
                gap_print_json(&w->p->out, gap);
        else
                gap_print_text(&w->text, gap);
        end_item(w);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        item_plans_forget(&w->plans, id);
        if (is_full(w))
                return;
        removed_events_add(&w->loop.removed, name);
        if (!w->p->json)
                return;
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "removed");
        JSON_STRING(&j, "event", name);
        JSON_NUMBER(&j, "id", id);
        json_end(&j, '}');
        json_end_line(&j);
}

static void on_end(void *userdata, const perfd_end *end) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        put_host_gap_alone(w);
        if (w->p->json)
                put_stream_end(&j, "printed", w->printed, end);
        host_note_end(w->p, end);
        stream_loop_end(&w->loop, end, w->printed, "items");
}

/* no-color.org; a terminal that says that it can do nothing. */
static bool wants_colours(void) {
        const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return !(no && *no) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static Watch watch_of(Perfctl *p, const WatchOptions *options) {
        return (Watch){ .p = p,
                        .options = options,
                        .host_error = UINT64_MAX,
                        .gap_due = UINT64_MAX,
                        .loop = { .p = p,
                                  .duration = options->duration,
                                  .may_lose = options->may_lose,
                                  .has_tables = options->has_tables,
                                  .is_watched = true,
                                  .is_full = is_enough,
                                  .loss.advice = "--where EXPR and --fields make them fewer or shorter" },
                        .text = { .out = &p->out,
                                  .time.form = options->time,
                                  .raw = options->raw,
                                  .columns = options->columns,
                                  .is_padded = p->human,
                                  .has_colours = p->human && wants_colours(),
                                  .has_kernels = options->subscription.n_fields > 0 } };
}

int watch_run(Perfctl *p, const WatchOptions *options) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Watch w = watch_of(p, options);
        int r;

        w.loop.userdata = &w;
        w.text.symbols = &w.symbols;
        w.plans.has_frames = options->has_names;
        w.plans.form = p->json ? ITEM_FORM_JSON : w.text.has_kernels ? ITEM_FORM_TEXT_KERNELS : ITEM_FORM_TEXT;
        w.text.plans = p->human ? NULL : &w.plans;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        callbacks.wall = on_wall;
        w.loop.tick = p->gap.why ? on_tick : NULL;
        r = stream_loop_run(&w.loop, &options->subscription, &callbacks, options->has_names ? choose : NULL);
        put_host_gap_alone(&w); /* it was lost again */
        host_note(p, NOTE_SUM, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s", w.printed, w.received, w.missed, w.missed_for);
        frame_names_free(w.names);
        kallsyms_deinit(&w.symbols);
        item_plans_deinit(&w.plans);
        return r;
}

int watch_print_gap(Perfctl *p, const WatchOptions *options) {
        Watch w = watch_of(p, options);
        const uint64_t to = p->gap.to;

        w.text.symbols = &w.symbols;
        if (!p->json)
                item_text_put_heading(&w.text);
        host_item_begin(p, to, UNKNOWN_ERROR);
        if (p->json)
                host_gap_put_json(&p->out, &p->gap);
        else
                host_gap_print_text(&w.text, options->time == TIME_WALL ? to : 0, &p->gap);
        host_item_end(p);
        return PERFCTL_OK;
}
