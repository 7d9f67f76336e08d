/*
 * Batches of libperfd beside its callbacks: the same packets by both, from a socket and out of shared memory, and all that is said of
 * an item in one way has to be said in the other.
 */
#include "tests/unit/played-batch.h"

#define LARGE (PERFD_BATCH_MAX + 500) /* items: more than a batch has, and than the ring */

typedef struct Sums {
        uint64_t items, heads, fields, columns, lost, missed, gaps, batches, not_samples;
        bool ended;
} Sums;

/* ---- what is played ------------------------------------------------------------------------------------------------ */

/* n items: of one event, or of all, and lost records. */
static void play_mixture(int fd, uint64_t sequence, size_t n, bool is_mixed) {
        static const uint32_t events[] = { FIXED, TEXTS, PLAYED_EVENT, FIXED, 0 };
        static Perfd__V1__Item items[LARGE], *list[LARGE];
        static uint64_t numbers[LARGE][3];
        static ProtobufCBinaryData texts[LARGE];
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;

        for (size_t i = 0; i < n; i++) {
                item_init(&items[i], numbers[i], &texts[i], is_mixed ? events[next_random() % ARRAY_SIZE(events)] : FIXED);
                list[i] = &items[i];
        }
        p.sequence = sequence;
        p.items = list;
        p.n_items = n;
        play_packet(fd, &p);
}

/* ---- what is said of it -------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t sum, uint64_t number) {
        return (sum ^ number) * 0x9E3779B97F4A7C15;
}

static void add_head(Sums *s, uint64_t time, uint32_t event, uint32_t cpu, uint32_t pid, uint32_t tid, perfd_record record) {
        s->items++;
        s->not_samples += record != PERFD_SAMPLE;
        s->heads = mix(mix(mix(s->heads, time), (uint64_t)event << 32 | cpu), (uint64_t)pid << 32 | tid) + record;
}

static void add_fields(Sums *s, const perfd_item *item) {
        perfd_value v;

        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                for (size_t k = 0; k < v.count; k++)
                        s->fields = mix(s->fields, v.numbers[k]);
                for (size_t k = 0; k < v.text.length; k++)
                        s->fields = mix(s->fields, (uint8_t)v.text.bytes[k]);
                if (perfd_item_event(item)->id == FIXED || (perfd_item_event(item)->id == TEXTS && i == 0))
                        for (size_t k = 0; k < v.count; k++)
                                s->columns += v.numbers[k] ^ perfd_item_time(item);
        }
        s->lost += perfd_item_lost(item);
        s->fields = mix(s->fields, perfd_item_comm(item).length);
}

static void on_every_item(void *userdata, const perfd_item *item) {
        const perfd_event *event = perfd_item_event(item);

        add_head(userdata, perfd_item_time(item), event ? event->id : 0, perfd_item_cpu(item), perfd_item_pid(item), perfd_item_tid(item),
                 perfd_item_record(item));
        add_fields(userdata, item);
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        ((Sums *)userdata)->gaps += gap->items;
}

static void on_its_end(void *userdata, const perfd_end *end) {
        Sums *s = userdata;

        s->ended = true;
        assert_int_equal(end->received, s->items);
        assert_int_equal(end->missed, s->gaps);
}

static void add_column(Sums *s, const perfd_batch *batch, uint32_t event, const char *field, size_t count) {
        const perfd_column *column, *again;

        assert_int_equal(perfd_batch_column(batch, event, field, &column), 0);
        assert_int_equal(perfd_batch_column(batch, event, field, &again), 0);
        assert_ptr_equal(column, again);
        assert_int_equal(column->count, count);
        assert_string_equal(column->field->name, field);
        for (size_t i = 0; i < column->n; i++) {
                assert_int_equal(batch->events[column->rows[i]], event);
                for (size_t k = 0; k < count; k++)
                        s->columns += column->values[i * count + k] ^ batch->times[column->rows[i]];
        }
}

static void add_batch(Sums *s, const perfd_batch *b) {
        uint64_t lost = s->lost, others = s->not_samples;

        assert_true(b->n <= PERFD_BATCH_MAX);
        s->batches++;
        s->missed += b->missed;
        for (size_t i = 0; i < b->n; i++) {
                add_head(s, b->times[i], b->events[i], b->cpus[i], b->pids[i], b->tids[i], (perfd_record)b->records[i]);
                add_fields(&(Sums){ .items = 0 }, perfd_batch_item(b, b->items[b->n - 1 - i])); /* in any order, again and again */
        }
        for (size_t i = 0; i < b->n; i++) {
                Sums fields = { .fields = s->fields };

                add_fields(&fields, perfd_batch_item(b, b->items[i]));
                s->fields = fields.fields;
                s->lost += fields.lost;
        }
        assert_int_equal(s->not_samples - others, b->n - b->n_samples);
        assert_int_equal(s->lost - lost, b->lost);
        add_column(s, b, FIXED, "n", 1);
        add_column(s, b, FIXED, "pair", 2);
        add_column(s, b, TEXTS, "n", 1);
}

/* ---- two clients --------------------------------------------------------------------------------------------------- */

typedef struct Reader {
        Line line;
        Sums sums;
        bool by_batches;
} Reader;

static void reader_subscribe(Reader *r, bool by_ring) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks own = { .size = sizeof(own), .item = r->by_batches ? NULL : on_every_item, .gap = on_gap, .end = on_its_end };

        line_connect(&r->line);
        if (by_ring) {
                s.ring_bytes = SIZE;
                play_shared_ring(r->line.daemon, 2, r->line.ring, true);
        } else
                play_ok(r->line.daemon, 2);
        shared_ring_close_fds(r->line.ring);
        assert_int_equal(perfd_subscribe(r->line.client, &s, &own, &r->sums), 0);
        play_request_free(play_request(r->line.daemon));
}

static int reader_read(Reader *r) {
        const perfd_batch *batch;
        int code;

        if (!r->by_batches)
                return perfd_client_process(r->line.client);
        while ((code = perfd_stream_next_batch(r->line.client, &batch)) == 0 && batch->n > 0) {
                assert_int_equal(perfd_client_due(r->line.client), 0); /* there may be more */
                assert_int_equal(perfd_client_wait(r->line.client), 0);
                add_batch(&r->sums, batch);
        }
        return code;
}

/* What was played, to its end; by the ring in pieces of this size. */
static int reader_feed(Reader *r, bool by_ring, size_t piece) {
        static uint8_t bytes[2 * SIZE];
        ssize_t n;
        int code = 0;

        while (code == 0 && (n = recv(r->line.frames[0], bytes, piece, MSG_DONTWAIT)) > 0) {
                if (!by_ring)
                        play_bytes(r->line.daemon, bytes, (size_t)n);
                for (size_t done = 0, written; by_ring && code == 0 && done < (size_t)n; done += written) {
                        struct iovec part = { bytes + done, (size_t)n - done };

                        assert_int_equal(shared_ring_write(r->line.ring, &part, 1, &written), 0);
                        if (written == 0)
                                (void)shared_ring_wait(r->line.ring);
                        code = reader_read(r);
                        (void)shared_ring_hear(r->line.ring);
                }
                if (!by_ring)
                        code = reader_read(r);
        }
        return code;
}

/* Packet i, from 1 on; false: there are no more. */
static bool play_next(int fd, uint64_t i, size_t n_packets, size_t n_items) {
        if (i == 1)
                play_start(fd);
        else if (i == 2)
                play_descriptors(fd, i);
        else if (i < 3 + n_packets)
                play_mixture(fd, i, n_items, i % 3 > 0);
        else if (i == 3 + n_packets)
                play_gap(fd, i, i + 2, i + 3);
        else if (i == 4 + n_packets)
                play_mixture(fd, i + 3, 3, true);
        else
                play_end(fd, i + 3, 0, 0);
        return i <= 4 + n_packets;
}

static void read_all(Reader *r, bool by_batches, bool by_ring, size_t piece, size_t n_packets, size_t n_items) {
        uint64_t i = 1;
        int code;

        *r = (Reader){ .by_batches = by_batches };
        seed = 88172645463325252;
        reader_subscribe(r, by_ring);
        for (bool more = true; more; i++) {
                more = play_next(r->line.frames[1], i, n_packets, n_items);
                code = reader_feed(r, by_ring, piece);
                assert_int_equal(code, more ? 0 : PERFD_E_ENDED);
        }
        assert_int_equal(reader_read(r), PERFD_E_ENDED);
        assert_true(r->sums.ended);
        assert_int_equal(r->sums.items, n_packets * n_items + 3);
}

static void compare_all(bool by_ring, size_t piece, size_t n_packets, size_t n_items) {
        Reader called, batched;

        read_all(&called, false, by_ring, piece, n_packets, n_items);
        read_all(&batched, true, by_ring, piece, n_packets, n_items);
        assert_int_equal(batched.sums.heads, called.sums.heads);
        assert_int_equal(batched.sums.fields, called.sums.fields);
        assert_int_equal(batched.sums.columns, called.sums.columns);
        assert_int_equal(batched.sums.lost, called.sums.lost);
        assert_true(batched.sums.lost > 0 && batched.sums.not_samples > 0);
        assert_int_equal(batched.sums.missed, 20);
        assert_int_equal(batched.sums.gaps, 20);
        assert_true(batched.sums.batches >= n_packets * ((n_items + PERFD_BATCH_MAX - 1) / PERFD_BATCH_MAX));
        line_deinit(&called.line);
        line_deinit(&batched.line);
}

static void test_as_callbacks(void **state) {
        const size_t pieces[] = { 1, 7, 1000, SIZE };

        for (int by_ring = 0; by_ring < 2; by_ring++) {
                for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
                        compare_all(by_ring, pieces[i], 6, 20);
                compare_all(by_ring, SIZE, 30, 200);
                compare_all(by_ring, SIZE, 3, LARGE);
        }
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static void is_refused(const Reader *r, const perfd_batch *batch, uint32_t event, const char *field, const char *reason,
                       const char *message) {
        const perfd_column *column = NULL;

        assert_int_equal(perfd_batch_column(batch, event, field, &column), PERFD_E_INVALID);
        assert_null(column);
        assert_string_equal(perfd_client_error(r->line.client)->reason, reason);
        assert_string_equal(perfd_client_error(r->line.client)->message, message);
}

static void test_refusals(void **state) {
        perfd_client *nobody = perfd_client_new(NULL);
        Reader r = { .by_batches = false };
        const perfd_batch *batch = NULL;
        static char longest[1000];
        assert_int_equal(perfd_stream_next_batch(nobody, &batch), PERFD_E_STATE);
        perfd_client_free(nobody);
        memset(longest, 'x', sizeof(longest) - 1);

        reader_subscribe(&r, false);
        assert_int_equal(perfd_stream_next_batch(r.line.client, &batch), PERFD_E_STATE);
        assert_string_equal(perfd_client_error(r.line.client)->reason, "no-batches");
        assert_non_null(strstr(perfd_client_error(r.line.client)->message, "without perfd_callbacks.item"));
        assert_null(batch);
        play_start(r.line.daemon); /* it goes on by callbacks */
        play_items(r.line.daemon, 2, 100, 2);
        assert_int_equal(perfd_client_process(r.line.client), 0);
        assert_int_equal(r.sums.items, 2);
        line_deinit(&r.line);

        r = (Reader){ .by_batches = true };
        reader_subscribe(&r, false);
        play_start(r.line.daemon);
        play_descriptors(r.line.daemon, 2);
        play_mixture(r.line.daemon, 3, 3, false);
        assert_int_equal(perfd_stream_next_batch(r.line.client, &batch), 0);
        assert_int_equal(batch->n, 3);
        is_refused(&r, batch, 5, "n", "unknown-event", "the stream has no event 5: columns are of 7 (mine), 8 (fixed), 9 (texts)");
        is_refused(&r, batch, TEXTS, "text", "no-number", "texts: text is a text, and no number: it has columns of n");
        is_refused(&r, batch, PLAYED_EVENT, "list", "no-number",
               "mine: list is an array that has another length in each sample: it has columns of state, args, flags");
        is_refused(&r, batch, FIXED, "m", "unknown-field", "fixed: m is none of its fields: it has columns of n, pair");
        is_refused(&r, batch, FIXED, "", "unknown-field", "fixed: '' is no name of a field: it has columns of n, pair");
        is_refused(&r, batch, FIXED, "pair[0]", "unknown-field", "fixed: pair[0] is in the column of pair: it has columns of n, pair");
        is_refused(&r, batch, FIXED, "comm", "unknown-field", "fixed: comm is what perfd_batch_item() has: it has columns of n, pair");
        assert_null(perfd_batch_item(batch, (const perfd_packed_item *)(const void *)batch));
        assert_int_equal(perfd_batch_column(batch, FIXED, longest, &(const perfd_column *){ NULL }), PERFD_E_INVALID);
        add_batch(&r.sums, batch);
        line_deinit(&r.line);
}

/* ---- what is odd --------------------------------------------------------------------------------------------------- */

/* Who does not look at all of a batch, or reads on by perfd_client_process(), has all of them counted. */
static void test_items_passed_over(void **state) {
        static uint8_t bytes[SIZE];
        size_t n;

        for (int by_ring = 0; by_ring < 2; by_ring++) {
                Reader r = { .by_batches = true };
                const perfd_batch *batch;

                reader_subscribe(&r, by_ring);
                play_start(r.line.frames[1]);
                play_descriptors(r.line.frames[1], 2);
                for (int i = 0; i < 4; i++)
                        play_mixture(r.line.frames[1], 3 + i, 10, true);
                play_end(r.line.frames[1], 7, 0, 0);
                r.sums.items = 40;
                n = (size_t)recv(r.line.frames[0], bytes, sizeof(bytes), MSG_DONTWAIT);
                if (by_ring)
                        assert_int_equal(shared_ring_write(r.line.ring, &(struct iovec){ bytes, n }, 1, &n), 0);
                else
                        play_bytes(r.line.daemon, bytes, n);
                assert_int_equal(perfd_stream_next_batch(r.line.client, &batch), 0);
                assert_int_equal(batch->n, 10);
                assert_int_equal(perfd_client_process(r.line.client), PERFD_E_ENDED);
                assert_true(r.sums.ended);
                line_deinit(&r.line);
        }
}

/* A packet whose items are before their descriptor, which is another one than the one before. */
static void test_descriptor_behind(void **state) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item items[3], *list[] = { &items[0], &items[1], &items[2] };
        OwnDescriptor d;
        Perfd__V1__EventDescriptor *events[] = { &d.message };
        uint64_t numbers[3][3] = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } };
        uint8_t bytes[1024], turned[1040] = { 0x12, 0xff, 0x07 }; /* ServerMessage.packet, of which the length is filled in */
        Reader r = { .by_batches = true };
        const perfd_column *column;
        const perfd_batch *batch;
        ProtobufCBinaryData text;
        size_t n, n_items;

        reader_subscribe(&r, false);
        play_start(r.line.daemon);
        play_descriptors(r.line.daemon, 2);
        play_mixture(r.line.daemon, 3, 20, false);
        assert_int_equal(perfd_stream_next_batch(r.line.client, &batch), 0);
        add_column(&r.sums, batch, FIXED, "n", 1);

        descriptor_init(&d, FIXED); /* the same fields in another order: the second number is `pair`'s no more */
        d.list[0] = &d.fields[1];
        d.list[1] = &d.fields[0];
        for (int i = 0; i < 3; i++) {
                item_init(&items[i], numbers[i], &text, FIXED);
                numbers[i][2] = 100 + (uint64_t)i;
        }
        p.items = list;
        p.n_items = 3;
        n_items = perfd__v1__packet__pack(&p, bytes);
        p = (Perfd__V1__Packet)PERFD__V1__PACKET__INIT;
        p.sequence = 4;
        p.events = events;
        p.n_events = 1;
        n = n_items + perfd__v1__packet__pack(&p, bytes + n_items);
        assert_true(n < sizeof(bytes) && n >= 0x80);
        turned[1] = (uint8_t)(n | 0x80);
        turned[2] = (uint8_t)(n >> 7);
        memcpy(turned + 3, bytes, n);
        frame_header_put(bytes, (uint32_t)(n + 3));
        play_bytes(r.line.daemon, bytes, FRAME_HEADER_SIZE);
        play_bytes(r.line.daemon, turned, n + 3);
        assert_int_equal(perfd_stream_next_batch(r.line.client, &batch), 0);
        assert_int_equal(batch->n, 3);
        assert_int_equal(perfd_batch_column(batch, FIXED, "n", &column), 0);
        for (uint64_t i = 0; i < 3; i++)
                assert_int_equal(column->values[i], 100 + i);
        line_deinit(&r.line);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_callbacks),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_items_passed_over),
                cmocka_unit_test(test_descriptor_behind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
