/*
 * The samples of a window are those that came in it, as those of an interval of `count`. A key that chooses another subject starts at zero:
 * counting by all of them all the time would cost each sample as many look-ups, for tables at which nobody looks.
 */
#include "client/perfctl/top/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/count/count.h"
#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/names/live-names.h"
#include "client/perfctl/base/time-text.h"
#include "client/perfctl/top/print.h"
#include "client/perfctl/top/screen.h"

#define KERNEL_ADDRESS (UINT64_C(1) << 63)

static const char *const further[] = { "symbol", "comm", "pid,comm", "container", "unit", "cpu", "event" };

/* ---- what both have ------------------------------------------------------------------------------------------------------------------- */

int top_init(Top *t, Perfctl *p, const TopOptions *options) {
        const size_t most = 1 + sizeof(further) / sizeof(further[0]);
        int r;

        *t = (Top){ .p = p, .options = options, .subjects = must_have(calloc(most, sizeof(*t->subjects))) };
        t->keys.look.is_total = options->is_total;
        tally_init(&t->tally);
        r = subject_init(&t->subjects[t->keys.n_subjects++], p, options->by);
        for (size_t i = 0; i + 1 < most && r == 0 && !options->is_batch; i++)
                if (strcmp(further[i], options->by) != 0)
                        r = subject_init(&t->subjects[t->keys.n_subjects++], p, further[i]);
        return r;
}

static Subject *subject_of(const Top *t) {
        return &t->subjects[t->keys.subject];
}

/* They are of the subject that is left. */
static void forget(Top *t, size_t subject) {
        top_rows_deinit(&t->rows, &t->subjects[subject]);
        t->has_rows = false;
        tally_zero(&t->tally);
        t->begun = t->window_begun = clock_read(CLOCK_MONOTONIC);
        t->window_length = 0;
}

void top_deinit(Top *t) {
        top_rows_deinit(&t->rows, subject_of(t));
        for (size_t i = 0; i < t->keys.n_subjects; i++)
                subject_deinit(&t->subjects[i]);
        free(t->subjects);
        free(t->fields);
        tally_deinit(&t->tally);
        frame_names_free(t->names);
        kallsyms_deinit(&t->symbols);
}

void top_turn(Top *t) {
        const uint64_t now = clock_read(CLOCK_MONOTONIC);

        tally_turn(&t->tally);
        if (!t->keys.is_paused) {
                top_rows_deinit(&t->rows, subject_of(t));
                top_rows_init(&t->rows, subject_of(t), &t->tally, &t->symbols);
                top_rows_look(&t->rows, subject_of(t), &t->keys.look);
                t->has_rows = true;
                t->window_length = now - t->window_begun;
        }
        t->window_begun = now;
}

static void put_interval_json(const Top *t, uint64_t wall) {
        Json j = json_of(&t->p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "interval");
        if (wall > 0)
                JSON_NUMBER(&j, "time", wall - (uint64_t)t->wall_offset);
        JSON_NUMBER(&j, "counted", t->rows.sum.window.n);
        JSON_NUMBER(&j, "total", t->rows.sum.total.n);
        JSON_NUMBER(&j, "missed", t->loop.loss.dropped + t->loop.loss.ring);
        json_end(&j, '}');
        json_end_line(&j);
}

void top_print(Top *t, uint64_t wall) {
        Output *o = &t->p->out;
        TimeText text = { .form = TIME_WALL };
        const size_t n = t->options->rows > 0 && t->options->rows < t->rows.n ? t->options->rows : t->rows.n;

        t->n_tables++;
        if (t->p->json) {
                put_interval_json(t, wall);
                top_put_json(o, subject_of(t), &t->keys.look, &t->rows, &t->tally);
                return;
        }
        if (wall > 0) {
                output_put_string(o, t->n_tables > 1 ? "\n" : "");
                time_text_put(&text, o, wall, false);
                output_print(o, "  %" PRIu64 " sample%s", t->rows.sum.window.n, t->rows.sum.window.n == 1 ? "" : "s");
                if (t->loop.loss.dropped + t->loop.loss.ring > 0)
                        output_print(o, ", %" PRIu64 " lost since the start", t->loop.loss.dropped + t->loop.loss.ring);
                output_put_char(o, '\n');
        }
        top_put_table(o, subject_of(t), &t->keys.look, &t->rows, 0, n, t->p->human, t->p->human ? terminal_width(STDOUT_FILENO) : 0);
}

/* ---- the stream ----------------------------------------------------------------------------------------------------------------------- */

static bool is_batch_done(const Top *t) {
        return t->options->count > 0 && t->n_tables >= t->options->count;
}

/* It has all samples of its interval, as they come, if it is printed when the stream has ended. */
static bool is_last_of_batch(const Top *t) {
        return t->options->count > 0 && t->n_tables + 1 >= t->options->count;
}

static bool is_full(const void *userdata) {
        const Top *t = userdata;

        return t->is_told || is_batch_done(t);
}

static void act(Top *t, TopAction action, size_t subject, uint64_t now) {
        if (action == TOP_QUIT)
                t->is_told = true;
        if (action == TOP_ZERO || action == TOP_SUBJECT) {
                forget(t, subject);
                t->next = now + t->options->interval;
        }
        if (action == TOP_LOOK)
                top_rows_look(&t->rows, subject_of(t), &t->keys.look);
}

/* Whether something is to be drawn. */
static bool take_keys(Top *t, uint64_t now) {
        bool any = false;
        int key;

        while ((key = screen_key()) != SCREEN_NONE) {
                const size_t subject = t->keys.subject;
                const TopAction action = top_keys_take(&t->keys, key, t->rows.n, t->n_page);

                act(t, action, subject, now);
                any |= action != TOP_NOTHING;
        }
        return any;
}

static bool was_resized(void) {
        static TerminalSize last;
        const TerminalSize size = terminal_size(STDOUT_FILENO);
        const bool was = size.rows != last.rows || size.columns != last.columns;

        last = size;
        return was;
}

/* Not before there is something to show: what is said until then belongs on the terminal as it is. */
static void begin(Top *t, uint64_t now) {
        t->begun = t->window_begun = now;
        t->next = now + t->options->interval;
        if (t->options->is_batch)
                return;
        t->code = screen_open(t->p);
        t->is_told = t->code != 0;
}

/* The ends of windows are a grid: who is late does not move it. */
static uint64_t on_tick(void *userdata, uint64_t now) {
        Top *t = userdata;
        const uint64_t interval = t->options->interval;
        bool is_new = t->next == 0;

        if (t->loop.stopping)
                return UINT64_MAX;
        if (is_new)
                begin(t, now);
        if (screen_is_open()) {
                is_new |= take_keys(t, now);
                is_new |= was_resized();
        }
        if (now >= t->next && is_last_of_batch(t))
                t->next = UINT64_MAX;
        else if (now >= t->next) {
                top_turn(t);
                t->next += (now - t->next) / interval * interval + interval;
                is_new = true;
                if (!screen_is_open()) {
                        top_print(t, clock_read(CLOCK_REALTIME));
                        output_flush(&t->p->out);
                }
        }
        if (is_new && screen_is_open())
                top_draw(t, now);
        return t->next;
}

static void on_wall(void *userdata, const perfd_wall_reading *reading) {
        ((Top *)userdata)->wall_offset = (int64_t)(reading->wall - reading->time);
}

static void on_start(void *userdata, const perfd_start *s) {
        Top *t = userdata;
        Json j = json_of(&t->p->out);

        t->wall_offset = s->wall_offset;
        stream_loop_set_clock(&t->loop, s);
        if (!t->p->host)
                kallsyms_init(&t->symbols, s);
        for (size_t i = 0; i < t->keys.n_subjects && !t->names; i++)
                if (subject_has_frames(&t->subjects[i]))
                        t->names = live_names_new(t->p, s, true, false);
        if (t->p->json)
                put_stream_start(&j, s, false);
}

static void on_event(void *userdata, const perfd_event *event) {
        Top *t = userdata;

        for (size_t i = 0; i < t->keys.n_subjects; i++)
                subject_add_event(&t->subjects[i], event, typed_names_find(&t->loop.typed, event->name));
}

/* What was running: where the program counter was, or the innermost frame of one that has no other. */
static const FrameName *find_frame(const Top *t, const perfd_item *item) {
        const uint64_t ip = perfd_item_ip(item);
        const NamedFrame *frames;
        NamedFrame frame;

        if (!subject_has_frames(subject_of(t)))
                return NULL;
        if (ip == 0)
                return frame_names_of(t->names, item, &frames) > 0 ? frames[0].name : NULL;
        frame_names_find(t->names, perfd_item_pid(item), perfd_item_time(item), ip, ip >= KERNEL_ADDRESS, false, &frame);
        return frame.name;
}

static void on_item(void *userdata, const perfd_item *item) {
        Top *t = userdata;
        const perfd_record record = perfd_item_record(item);
        const uint8_t *key;
        size_t length;

        if (!stream_loop_takes(&t->loop, item))
                return;
        if (record == PERFD_SAMPLE) {
                key = subject_encode(subject_of(t), item, find_frame(t, item), &length);
                tally_add(&t->tally, key, length, perfd_item_period(item) > 0 ? perfd_item_period(item) : 1);
                t->counted++;
        } else if (record == PERFD_LOST || record == PERFD_LOST_SAMPLES)
                t->loop.loss.ring += perfd_item_lost(item);
        else if (t->names)
                live_names_feed(t->names, item);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        ((Top *)userdata)->loop.loss.dropped += gap->items;
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        (void)id;
        removed_events_add(&((Top *)userdata)->loop.removed, name);
}

/* Of a batch that was ended before its time: what came since. */
static void print_last(Top *t) {
        if (t->options->is_batch && !is_batch_done(t) && !t->p->out.error && (t->n_tables == 0 || t->options->count > 0 || t->tally.all.now.n > 0)) {
                top_turn(t);
                top_print(t, clock_read(CLOCK_REALTIME));
        }
}

static void on_end(void *userdata, const perfd_end *end) {
        Top *t = userdata;
        Json j = json_of(&t->p->out);

        screen_close();
        print_last(t);
        if (t->p->json)
                put_stream_end(&j, "counted", t->counted, end);
        stream_loop_end(&t->loop, end, t->counted, "samples");
}

/* The fields of --by, each that an event has, and raw bytes of none. */
static int choose(void *userdata, const EventWords *words, perfd_subscription *s) {
        Top *t = userdata;
        const CountOptions columns = { .columns = t->subjects[0].columns, .n_columns = t->subjects[0].n_columns };
        int r;

        free(t->fields);
        t->fields = NULL;
        stream_loop_ask_clock(&t->loop);
        r = count_choose_fields(t->p, &columns, words, &t->fields, &s->n_fields);
        s->fields = t->fields;
        s->payload = s->n_fields > 0 ? PERFD_PAYLOAD_FIELDS : PERFD_PAYLOAD_RAW;
        return r;
}

/* So many tables take that long. */
static uint64_t duration_of(const TopOptions *o) {
        uint64_t all;

        if (o->count == 0 || __builtin_mul_overflow(o->interval, o->count, &all))
                return o->duration;
        return o->duration > 0 && o->duration < all ? o->duration : all;
}

int top_run(Perfctl *p, const TopOptions *options) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Top t;
        int r = top_init(&t, p, options);

        t.loop = (StreamLoop){ .p = p, .duration = duration_of(options), .interval = options->interval, .may_lose = options->may_lose,
                               .has_tables = options->has_tables, .userdata = &t, .is_full = is_full, .tick = on_tick,
                               .has_input = !options->is_batch, .input = STDIN_FILENO, .loss.advice = "--where EXPR makes them fewer" };
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        callbacks.wall = on_wall;
        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = stream_loop_run(&t.loop, &options->subscription, &callbacks, choose);
        screen_close(); /* of a stream that broke off, as what follows */
        if (t.counted > 0)
                print_last(&t);
        top_deinit(&t);
        return t.code != 0 ? t.code : r;
}
