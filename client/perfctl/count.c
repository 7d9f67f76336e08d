/*
 * What comes is added up here and not in the daemon, which sends each sample once for all who want it. So the samples of an interval
 * are those that came in it: how long they lay in a ring before is a matter of milliseconds.
 */
#include "client/perfctl/count.h"

#include <stdlib.h>
#include <time.h>

#include "client/perfctl/stream-loop.h"
#include "client/perfctl/terminal.h"
#include "client/perfctl/time-text.h"

#define AROUND_TABLE 6 /* lines: time, heading, further keys, others, the cursor's, and an empty one behind another table */

typedef struct Count {
        StreamLoop loop;
        Perfctl *p;
        const CountOptions *options;
        Keys keys;
        CountMap map;
        const char **fields; /* that were asked for */
        int64_t wall_offset;
        uint64_t next;       /* CLOCK_MONOTONIC: when the interval ends; 0: it has not begun */
        uint64_t counted;    /* in all intervals */
        bool has_table;      /* one was printed */
        bool is_complete;    /* the last one was */
        bool has_told_others;
        size_t lines;        /* on the terminal, of the last table; 0: there is something below it */
        TerminalSize size;   /* of it, then; 0: nothing is live */
        uint64_t told_at;    /* loop.loss.told_at, then */
} Count;

static uint64_t wall_now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Before the table of an interval. */
static void put_time(Count *c) {
        TimeText text = { .form = TIME_WALL };
        Json j = json_of(&c->p->out);
        uint64_t wall = wall_now();

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
        count_print(c->p, options, &c->keys, &c->map);
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
                else if (!c->has_table || monotonic_now() >= c->next - c->options->interval / 2)
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

static void on_start(void *userdata, const perfd_start *s) {
        Count *c = userdata;
        Json j = json_of(&c->p->out);

        c->wall_offset = s->wall_offset;
        if (c->p->json)
                put_stream_start(&j, s);
}

static void on_event(void *userdata, const perfd_event *event) {
        keys_add_event(&((Count *)userdata)->keys, event);
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
        uint64_t *histogram, number;
        bool is_signed;

        if (record != PERFD_SAMPLE) {
                if (record == PERFD_LOST || record == PERFD_LOST_SAMPLES)
                        c->loop.loss.ring += perfd_item_lost(item);
                return;
        }
        keys_encode(&c->keys, item);
        histogram = count_map_add(&c->map, c->keys.bytes, c->keys.n_bytes);
        if (histogram && keys_number(&c->keys, item, &number, &is_signed))
                histogram[histogram_bucket(number, is_signed)]++;
        c->counted++;
        if (c->map.n_others > 0 && !c->has_told_others)
                tell_others(c);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        ((Count *)userdata)->loop.loss.dropped += gap->items;
}

static void on_end(void *userdata, const perfd_end *end) {
        Count *c = userdata;
        Json j = json_of(&c->p->out);

        print_last(c);
        if (c->p->json)
                put_stream_end(&j, "counted", c->counted, end);
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
                              .may_lose = options->may_lose,
                              .has_tables = options->has_tables,
                              .tick = on_tick,
                              .loss.advice = "--where EXPR makes them fewer" } };
        int r;

        c.loop.userdata = &c;
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        keys_init(&c.keys, options->columns, options->n_columns, options->has_number ? &options->number : NULL);
        count_map_init(&c.map, options->has_number);
        r = stream_loop_run(&c.loop, &options->subscription, &callbacks, choose);
        if (c.counted > 0 || c.has_table)
                print_last(&c); /* of a stream that broke off */
        free(c.fields);
        count_map_deinit(&c.map);
        keys_deinit(&c.keys);
        return r;
}
