/*
 * What comes is added up here and not in the daemon, which sends each sample once for all who want it. So the samples of an interval
 * are those that came in it: how long they may lie in a ring before is a quarter of it at most, for which the daemon is asked.
 */
#include "client/perfctl/count/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/gap.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/stream/stream-loop.h"
#include "client/perfctl/base/terminal.h"
#include "client/perfctl/base/time-text.h"

#define AROUND_TABLE 6 /* lines: time, heading, further keys, others, the cursor's, and an empty one behind another table */

typedef struct Count {
        StreamLoop loop;
        Perfctl *p;
        const CountOptions *options;
        Keys keys;
        CountMap map;
        Kallsyms symbols;
        const char **fields; /* that were asked for */
        EventWords counted_only; /* of which it was said that they have no samples */
        int64_t wall_offset; /* of the latest reading */
        HostWall host_wall;  /* for Perfctl.gap */
        uint64_t latest;     /* of the stream's clock, ns: the last item or reading that came */
        uint64_t received, missed; /* items, and those of gaps */
        char missed_for[32]; /* the reason of the last one */
        uint64_t next;       /* CLOCK_MONOTONIC: when the interval ends; 0: it has not begun */
        uint64_t counted;    /* in all intervals */
        bool has_table;      /* one was printed */
        bool is_complete;    /* the last one was */
        bool has_told_others;
        size_t lines;        /* on the terminal, of the last table; 0: there is something below it */
        TerminalSize size;   /* of it, then; 0: nothing is live */
        uint64_t told_at;    /* loop.loss.told_at, then */
} Count;

/* Before the table of an interval. */
static void put_time(Count *c) {
        TimeText text = { .form = TIME_WALL };
        Json j = json_of(&c->p->out);
        uint64_t wall = clock_read(CLOCK_REALTIME);

        if (c->p->json) {
                json_begin(&j, '{');
                JSON_STRING(&j, "kind", "interval");
                JSON_NUMBER(&j, "time", wall - (uint64_t)c->wall_offset);
                JSON_NUMBER(&j, "counted", c->map.total);
                json_end(&j, '}');
                json_end_line(&j);
                return;
        }
        if (c->has_table)
                output_put_char(&c->p->out, '\n');
        time_text_put(&text, &c->p->out, wall, false);
        output_put_char(&c->p->out, '\n');
}

static void print(Count *c, const CountOptions *options) {
        if (c->options->interval > 0)
                put_time(c);
        count_print(c->p, options, &c->keys, &c->map, &c->symbols);
        count_map_reset(&c->map);
        c->has_table = true;
}

/*
 * Over the table before, unless something was said below it, or lines may have been wrapped since: then below that. The whole of it
 * is less than what `out` holds, so it is written at once.
 */
static void print_live(Count *c) {
        TerminalSize size = terminal_size(c->p->out.fd);
        CountOptions options = *c->options;
        Output *o = &c->p->out;
        size_t top = size.rows > AROUND_TABLE ? size.rows - AROUND_TABLE : 1;

        options.width = size.columns;
        options.top = options.top > 0 && options.top < top ? options.top : top;
        output_flush(o);
        if (c->lines > 0 && c->told_at == c->loop.loss.told_at && c->size.rows == size.rows && c->size.columns == size.columns) {
                output_print(o, "\r\033[%zuA\033[J", c->lines);
                c->has_table = false;
        }
        c->lines = 0;
        print(c, &options);
        for (size_t i = 0; i < o->n; i++)
                c->lines += o->bytes[i] == '\n';
        c->size = size;
        c->told_at = c->loop.loss.told_at;
        output_flush(o);
}

/* The live table of an interval stays if there is less than half of another one. */
static void print_last(Count *c) {
        if (!c->is_complete && !c->p->out.error) {
                if (!c->options->is_live)
                        print(c, c->options);
                else if (!c->has_table || clock_read(CLOCK_MONOTONIC) >= c->next - c->options->interval / 2)
                        print_live(c);
        }
        c->is_complete = true;
}

/* The ends of intervals are a grid: who is late does not move it. */
static uint64_t on_tick(void *userdata, uint64_t now) {
        Count *c = userdata;
        uint64_t interval = c->options->interval;

        if (interval == 0 || c->loop.stopping)
                return UINT64_MAX;
        if (c->next == 0)
                c->next = now + interval;
        if (now >= c->next) {
                if (c->options->is_live)
                        print_live(c);
                else
                        print(c, c->options);
                output_flush(&c->p->out);
                c->next += (now - c->next) / interval * interval + interval;
        }
        return c->next;
}

/* Of now, which is what an interval's time is. */
static void on_wall(void *userdata, const perfd_wall_reading *reading) {
        Count *c = userdata;

        c->wall_offset = (int64_t)(reading->wall - reading->time);
        c->latest = reading->time > c->latest ? reading->time : c->latest;
}

static void on_start(void *userdata, const perfd_start *s) {
        Count *c = userdata;
        Json j = json_of(&c->p->out);

        c->wall_offset = s->wall_offset;
        if (!c->p->host)
                kallsyms_init(&c->symbols, s);
        if (c->p->json)
                put_stream_start(&j, s, c->p->is_of_several);
        host_note(c->p, NOTE_START, "%s", s->host);
        host_gap_put_line(c->p, host_wall_now(&c->host_wall, s->wall_offset));
}

/* Once: descriptions come again when an event changes. */
static void tell_counted_only(Count *c, const perfd_event *event) {
        char interval[QUANTITY_SIZE];

        for (size_t i = 0; i < c->counted_only.n; i++)
                if (strcmp(c->counted_only.names[i], event->name) == 0)
                        return;
        event_words_take(&c->counted_only, event->name);
        c->lines = 0;
        (void)perfctl_fail(c->p, PERFCTL_OK, "%s has no samples: it is only counted, every %s, and `perfctl watch '%s'` shows its counts",
                           event->name, quantity_show_time(event->interval, interval), event->name);
}

static void on_event(void *userdata, const perfd_event *event) {
        Count *c = userdata;

        keys_add_event(&c->keys, event, typed_names_find(&c->loop.typed, event->name));
        if (event->interval > 0)
                tell_counted_only(c, event);
}

static void tell_others(Count *c) {
        c->has_told_others = true;
        c->lines = 0;
        (void)perfctl_fail(c->p, PERFCTL_OK, "there is room for %zu keys, and %zu MiB of them: samples of further ones are counted "
                           "together, as (others)", COUNT_KEYS_MAX, COUNT_BYTES_MAX >> 20);
}

static void on_item(void *userdata, const perfd_item *item) {
        Count *c = userdata;
        perfd_record record = perfd_item_record(item);
        const CountOptions *o = c->options;
        CountNumber *numbers;
        uint64_t number;
        size_t entry;
        bool is_signed;

        c->received++;
        c->latest = perfd_item_time(item) > c->latest ? perfd_item_time(item) : c->latest;
        if (record != PERFD_SAMPLE) {
                if (record == PERFD_LOST || record == PERFD_LOST_SAMPLES)
                        c->loop.loss.ring += perfd_item_lost(item);
                return;
        }
        keys_encode(&c->keys, item);
        entry = count_map_add(&c->map, c->keys.bytes, c->keys.n_bytes);
        numbers = count_map_numbers(&c->map, entry);
        for (size_t i = 0; i < o->n_functions; i++)
                if (keys_number(&c->keys, item, i, &number, &is_signed))
                        count_number_add(&numbers[i], o->functions[i].function, number, is_signed);
        if (o->has_number && keys_number(&c->keys, item, o->n_functions, &number, &is_signed))
                count_map_histogram(&c->map, entry)[histogram_bucket(number, is_signed)]++;
        c->counted++;
        if (c->map.n_others > 0 && !c->has_told_others)
                tell_others(c);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        Count *c = userdata;

        c->loop.loss.dropped += gap->items;
        c->missed += gap->items;
        (void)snprintf(c->missed_for, sizeof(c->missed_for), "%s", gap->reason);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        (void)id;
        removed_events_add(&((Count *)userdata)->loop.removed, name);
}

static void on_end(void *userdata, const perfd_end *end) {
        Count *c = userdata;
        Json j = json_of(&c->p->out);

        print_last(c);
        if (c->p->json)
                put_stream_end(&j, "counted", c->counted, end);
        host_note_end(c->p, end);
        stream_loop_end(&c->loop, end, c->counted, "samples");
}

/* No more than is needed: of events that have a field, or of none, of which raw bytes cost nothing but themselves. */
static int choose(void *userdata, const EventWords *words, perfd_subscription *s) {
        Count *c = userdata;
        int r;

        free(c->fields);
        c->fields = NULL;
        r = count_choose_fields(c->p, c->options, words, &c->fields, &s->n_fields);
        s->fields = c->fields;
        s->payload = s->n_fields > 0 ? PERFD_PAYLOAD_FIELDS : PERFD_PAYLOAD_RAW;
        return r;
}

int count_run(Perfctl *p, const CountOptions *options) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Count c = { .p = p,
                    .options = options,
                    .loop = { .p = p,
                              .duration = options->duration,
                              .interval = options->interval,
                              .may_lose = options->may_lose,
                              .has_tables = options->has_tables,
                              .tick = on_tick,
                              .loss.advice = "--where EXPR makes them fewer" } };
        const KeyName *numbers[KEY_NUMBERS_MAX];
        size_t n_numbers = 0;
        int r;

        for (; n_numbers < options->n_functions; n_numbers++)
                numbers[n_numbers] = &options->functions[n_numbers].name;
        if (options->has_number)
                numbers[n_numbers++] = &options->number;
        c.loop.userdata = &c;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.removed = on_removed;
        callbacks.end = on_end;
        callbacks.wall = on_wall;
        keys_init(&c.keys, options->columns, options->n_columns, numbers, n_numbers);
        count_map_init(&c.map, options->has_number, options->n_functions);
        if (p->gap.why)
                c.host_wall = host_wall_ask(p);
        r = stream_loop_run(&c.loop, &options->subscription, &callbacks, choose);
        if (c.counted > 0 || c.has_table)
                print_last(&c); /* of a stream that broke off */
        if (c.latest > 0)
                host_note(p, NOTE_WALL, "%" PRIu64, c.latest + (uint64_t)c.wall_offset);
        host_note(p, NOTE_SUM, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s", c.counted, c.received, c.missed, c.missed_for);
        free(c.fields);
        event_words_deinit(&c.counted_only);
        kallsyms_deinit(&c.symbols);
        count_map_deinit(&c.map);
        keys_deinit(&c.keys);
        return r;
}
