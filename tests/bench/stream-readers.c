#include "tests/bench/stream-readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/wire/wire.h"
#include "proto/frame.h"

static void fail(const char *what) {
        fprintf(stderr, "bench-client: %s\n", what);
        exit(EXIT_FAILURE);
}

/* ---- without the library ----------------------------------------------------------------------------------------- */

#define SUMS_AT 29 /* | time 9 | event 5 | cpu 5 | pid 5 | tid 5 | key 1 | length 1 | numbers */

static void bare_item(StreamReader *r, const uint8_t *item, size_t length) {
        r->n_items++;
        if (r->reading != READ_BARE_SUM)
                return;
        r->sum += wire_get_fixed64(item + 1);
        for (const uint8_t *at = item + SUMS_AT + 2, *end = item + length; at < end; at += 8)
                r->sum += wire_get_fixed64(at);
}

/* Whole frames, each with a packet whose number has five bytes, and items. */
static void bare_frames(StreamReader *r, const uint8_t *at, size_t n) {
        for (const uint8_t *end = at + n, *frame_end; at < end;) {
                uint32_t length;

                memcpy(&length, at, sizeof(length));
                frame_end = at + FRAME_HEADER_SIZE + length;
                for (at += FRAME_HEADER_SIZE + 5 + 6; at < frame_end; at += length) {
                        length = at[1];
                        at += 2;
                        if (length >= 0x80)
                                length = (length & 0x7f) | (uint32_t)*at++ << 7;
                        bare_item(r, at, length);
                }
        }
}

static void bare_read(StreamReader *r) {
        static uint8_t block[FEED_PACKETS * (64 << 10) + 4096];
        const uint8_t *bytes;
        size_t n = 0;

        if (r->feed->ring) {
                if (ring_reader_peek(&r->ring, &bytes, &n) != 0)
                        fail("a shared ring");
                bare_frames(r, bytes, n);
                (void)ring_reader_consume(&r->ring, n);
                return;
        }
        while (n < r->feed->length) {
                ssize_t some = recv(r->feed->theirs, block + n, sizeof(block) - n, 0);

                if (some <= 0)
                        fail("the socket ends");
                n += (size_t)some;
        }
        bare_frames(r, block, n);
}

/* ---- by callbacks ------------------------------------------------------------------------------------------------ */

static void on_none(void *userdata, const perfd_item *item) {
        StreamReader *r = userdata;

        (void)item;
        r->n_items++;
        r->sum++;
}

static uint64_t sum_of_value(const perfd_value *v) {
        uint64_t sum = v->text.length;

        for (size_t k = 0; k < v->count; k++)
                sum += v->numbers[k];
        return sum;
}

static uint64_t sum_of_head(const perfd_item *item) {
        return perfd_item_time(item) + perfd_item_cpu(item) + perfd_item_pid(item) + perfd_item_tid(item) +
               perfd_item_comm(item).length;
}

static void on_fields(void *userdata, const perfd_item *item) {
        StreamReader *r = userdata;
        perfd_value v;

        r->n_items++;
        for (size_t i = 0; perfd_item_get(item, i, &v); i++)
                r->sum += sum_of_value(&v);
}

static void on_all(void *userdata, const perfd_item *item) {
        ((StreamReader *)userdata)->sum += sum_of_head(item);
        on_fields(userdata, item);
}

static void on_by_name(void *userdata, const perfd_item *item) {
        static const char *const enter[] = { "id", "args", NULL };
        static const char *const switched[] = { "prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid",
                                                "next_prio", NULL };
        StreamReader *r = userdata;
        perfd_value v;

        r->n_items++;
        r->sum += sum_of_head(item);
        for (const char *const *name = perfd_item_event(item)->id == FEED_SYS_ENTER_ID ? enter : switched; *name; name++)
                if (perfd_item_find(item, *name, &v))
                        r->sum += sum_of_value(&v);
}

/* ---- by batches -------------------------------------------------------------------------------------------------- */

static void read_heads(StreamReader *r, const perfd_batch *batch) {
        static uint64_t counts[4];
        uint64_t sum = 0;

        for (size_t i = 0; i < batch->n; i++) {
                sum += batch->times[i];
                counts[batch->events[i] % 4]++;
        }
        r->sum += sum + counts[FEED_SYS_ENTER_ID];
}

static void read_column(StreamReader *r, const perfd_batch *batch, uint32_t event, const char *field) {
        const perfd_column *column;
        uint64_t sum = 0;

        if (perfd_batch_column(batch, event, field, &column) != 0)
                fail(perfd_client_error(r->client)->message);
        for (size_t i = 0; i < column->n * column->count; i++)
                sum += column->values[i];
        r->sum += sum;
}

static void read_columns(StreamReader *r, const perfd_batch *batch) {
        static const char *const enter[] = { "id", "args", NULL };
        static const char *const switched[] = { "prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio", NULL };

        for (uint32_t event = FEED_SYS_ENTER_ID; event <= FEED_SWITCH_ID; event++) {
                const char *const *names = event == FEED_SYS_ENTER_ID ? enter : switched;

                if (r->feed->events != FEED_BOTH && event != FEED_SYS_ENTER_ID + (uint32_t)r->feed->events)
                        continue;
                for (; *names; names++) {
                        read_column(r, batch, event, *names);
                        if (r->reading == READ_COLUMN)
                                break;
                }
        }
}

static void read_batches(StreamReader *r) {
        const perfd_batch *batch;

        for (;;) {
                if (perfd_stream_next_batch(r->client, &batch) != 0)
                        fail(perfd_client_error(r->client)->message);
                if (batch->n == 0)
                        return;
                r->n_items += batch->n;
                r->sum++;
                if (r->reading == READ_HEADS)
                        read_heads(r, batch);
                else if (r->reading > READ_HEADS)
                        read_columns(r, batch);
        }
}

/* ---- a reader ---------------------------------------------------------------------------------------------------- */

void stream_reader_init(StreamReader *r, StreamReading reading, Feed *feed) {
        static void (*const on_item[])(void *userdata, const perfd_item *item) = {
                [READ_NONE] = on_none, [READ_FIELDS] = on_fields, [READ_ALL] = on_all, [READ_BY_NAME] = on_by_name,
        };
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;

        memset(r, 0, sizeof(*r));
        r->reading = reading;
        r->feed = feed;
        if (reading >= READ_LINES) {
                stream_printer_init(&r->printer, reading == READ_JSON || reading == READ_BARE_JSON ? PRINT_JSON : PRINT_LINES,
                                    reading >= READ_BARE_LINES, feed);
                return;
        }
        if (reading < READ_NONE) {
                if (feed->ring && ring_reader_open(&r->ring, feed->ring->fds, feed->ring->size, feed->ring->offset) != 0)
                        fail("a shared ring");
                return;
        }
        callbacks.item = reading < READ_BATCHES ? on_item[reading] : NULL;
        r->client = feed_subscribe(feed, &callbacks, r);
}

void stream_reader_deinit(StreamReader *r) {
        ring_reader_close(&r->ring);
        perfd_client_free(r->client);
        stream_printer_deinit(&r->printer);
}

/* What tests/bench/instructions counts by its name. */
__attribute__((noipa)) void stream_reader_read(StreamReader *r) {
        if (r->reading >= READ_LINES)
                r->sum += r->n_items += stream_printer_print(&r->printer);
        else if (!r->client)
                bare_read(r);
        else if (r->reading >= READ_BATCHES)
                read_batches(r);
        else if (perfd_client_process(r->client) != 0)
                fail(perfd_client_error(r->client)->message);
}

void stream_reader_check(StreamReader *r, uint64_t n_items) {
        if (r->n_items != n_items || (n_items > 0 && r->sum == 0 && r->reading != READ_BARE_SKIP))
                fail("items are missing");
        r->n_items = r->sum = 0;
}
