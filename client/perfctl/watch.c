/* Items of a stream as they come: each is a line. */
#include "client/perfctl/watch.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/host-item.h"
#include "client/perfctl/item-print.h"
#include "client/perfctl/stream-loop.h"

typedef struct Watch {
        StreamLoop loop;
        Perfctl *p;
        const WatchOptions *options;
        ItemText text;
        Kallsyms symbols;
        ItemPlans plans;
        uint64_t printed;
        uint64_t host_error; /* of its wall time, ns; UINT64_MAX: not known */
} Watch;

/* Nothing more is printed: it was enough, or nobody reads it. */
static bool is_full(const Watch *w) {
        return (w->options->count > 0 && w->printed == w->options->count) || w->p->out.error;
}

static bool is_enough(const void *userdata) {
        return is_full(userdata);
}

static void on_start(void *userdata, const perfd_start *s) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        if (!w->p->host)
                kallsyms_init(&w->symbols, s);
        if (w->p->json)
                put_stream_start(&j, s, w->p->is_of_several);
}

static void on_event(void *userdata, const perfd_event *event) {
        Watch *w = userdata;

        item_text_add_event(&w->text, event->name);
        item_plans_forget(&w->plans, event->id);
}

static void on_wall(void *userdata, const perfd_wall_reading *reading) {
        Watch *w = userdata;
        Json j = json_of(&w->p->out);

        w->host_error = reading->host_error > 0 ? reading->host_error : UINT64_MAX;
        if (w->p->json && !is_full(w))
                put_wall_reading(&j, reading);
}

/* Wall time where lines that follow are from, which begin an item. 0, which is no time, has none. */
static uint64_t begin_item(Watch *w, uint64_t time) {
        uint64_t wall = 0, error = 0;

        if (time > 0)
                (void)perfd_stream_wall(w->p->client, time, &wall, &error); /* cannot fail: the stream has started */
        w->text.time.wall_offset = (int64_t)(wall - time);
        if (!w->p->is_of_several)
                return wall;
        if (!w->p->json)
                item_text_put_heading(&w->text);
        host_item_begin(w->p, wall, error < UINT64_MAX - w->host_error ? error + w->host_error : UINT64_MAX);
        return wall;
}

static void end_item(Watch *w) {
        if (w->p->is_of_several)
                host_item_end(w->p);
}

static void on_item(void *userdata, const perfd_item *item) {
        Watch *w = userdata;
        uint64_t wall;

        if (is_full(w))
                return;
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

        if (w->p->json)
                put_stream_end(&j, "printed", w->printed, end);
        stream_loop_end(&w->loop, end, w->printed, "items");
}

/* no-color.org; a terminal that says that it can do nothing. */
static bool wants_colours(void) {
        const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

        return !(no && *no) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

int watch_run(Perfctl *p, const WatchOptions *options) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Watch w = { .p = p,
                    .options = options,
                    .host_error = UINT64_MAX,
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
        int r;

        w.loop.userdata = &w;
        w.text.symbols = &w.symbols;
        w.plans.form = p->json ? ITEM_FORM_JSON : w.text.has_kernels ? ITEM_FORM_TEXT_KERNELS : ITEM_FORM_TEXT;
        w.text.plans = p->human ? NULL : &w.plans;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        callbacks.wall = on_wall;
        r = stream_loop_run(&w.loop, &options->subscription, &callbacks, NULL);
        kallsyms_deinit(&w.symbols);
        item_plans_deinit(&w.plans);
        return r;
}
