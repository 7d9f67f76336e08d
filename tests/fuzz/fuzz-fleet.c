/*
 * Any messages as what comes from NATS: whatever their subjects, headers and bytes are, what is counted is what was called back, and a
 * sum that is said to balance does. The same by batches has the same streams.
 *
 *     messages of | what (1) | subject | values of all headers | length (2, little-endian) | bytes |
 *
 * A text is its length (1) and its bytes, 255: there is none. `what`: 0 gives it to perfd_fleet_take(); 1: to perfd_fleet_describe(); 2:
 * its subject is the one that is needed, and it is described; 3: no descriptors; 4: the first stream is reckoned, by its length; 5: it is
 * forgotten.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/perfd.h"

#define HEADERS 9
#define TEXT_MAX 255

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const names[HEADERS] = {
        "Perfd-Machine", "Perfd-Boot", "Perfd-Epoch", "Perfd-Sequence", "Perfd-Descriptors", "Perfd-Wall-Offset", "Perfd-Part", "Perfd-Items",
        "Perfd-Matched",
};

typedef struct Message {
        uint8_t what;
        char subject[TEXT_MAX + 1], values[HEADERS][TEXT_MAX + 1];
        bool has_value[HEADERS];
        const uint8_t *bytes;
        size_t length;
} Message;

typedef struct Input {
        const uint8_t *at, *end;
} Input;

typedef struct Seen {
        perfd_fleet *fleet;
        uint64_t items, refused, streams, ends;
} Seen;

static uint8_t next_byte(Input *in) {
        return in->at < in->end ? *in->at++ : 0;
}

static bool next_text(Input *in, char to[TEXT_MAX + 1]) {
        size_t n = next_byte(in), left = (size_t)(in->end - in->at);
        bool is_there = n < TEXT_MAX;

        n = !is_there ? 0 : n < left ? n : left;
        memcpy(to, in->at, n);
        to[n] = '\0';
        in->at += n;
        return is_there;
}

static bool next_message(Input *in, Message *m) {
        size_t left;

        if (in->at == in->end)
                return false;
        m->what = next_byte(in);
        (void)next_text(in, m->subject);
        for (int i = 0; i < HEADERS; i++)
                m->has_value[i] = next_text(in, m->values[i]);
        m->length = next_byte(in);
        m->length |= (size_t)next_byte(in) << 8;
        left = (size_t)(in->end - in->at);
        m->length = m->length < left ? m->length : left;
        m->bytes = in->at;
        in->at += m->length;
        return true;
}

static const char *get_header(void *userdata, const char *name) {
        const Message *m = userdata;

        for (int i = 0; i < HEADERS; i++)
                if (strcmp(name, names[i]) == 0)
                        return m->has_value[i] ? m->values[i] : NULL;
        return NULL;
}

static void on_begin(void *userdata, const perfd_fleet_stream *s) {
        ((Seen *)userdata)->streams++;
}

static void on_item(void *userdata, const perfd_fleet_stream *s, const perfd_item *item) {
        Seen *seen = userdata;
        perfd_value v;

        for (size_t i = 0; perfd_item_get(item, i, &v); i++)
                ;
        (void)perfd_fleet_wall(s, perfd_item_time(item), NULL);
        seen->items++;
}

static void on_batch(void *userdata, const perfd_fleet_stream *s, const perfd_batch *batch) {
        Seen *seen = userdata;

        assert(batch->n > 0);
        for (size_t i = 0; i < batch->n; i++)
                assert(perfd_batch_item(batch, batch->items[i]));
        seen->items += batch->n;
}

static void on_gap(void *userdata, const perfd_fleet_stream *s, const perfd_gap *gap) {
        assert(gap->first_sequence > 0 && gap->first_sequence <= gap->last_sequence && gap->last_sequence < UINT64_MAX);
}

static void on_end(void *userdata, const perfd_fleet_stream *s, const perfd_end *end) {
        assert(s->state == PERFD_FLEET_ENDED);
        ((Seen *)userdata)->ends++;
}

static void on_refused(void *userdata, const perfd_fleet_stream *s, const char *why) {
        assert(why[0]);
        ((Seen *)userdata)->refused++;
}

static perfd_fleet_message message_of(Message *from) {
        perfd_fleet_message m = PERFD_FLEET_MESSAGE_INIT;

        m.subject = from->subject;
        m.header = get_header;
        m.userdata = from;
        m.bytes = from->bytes;
        m.length = from->length;
        return m;
}

static void describe(perfd_fleet *fleet, Message *from) {
        const char *needed = perfd_fleet_needed(fleet);
        perfd_fleet_message m;
        int r;

        if (from->what == 2 && needed)
                (void)snprintf(from->subject, sizeof(from->subject), "%s", needed);
        m = message_of(from);
        r = perfd_fleet_describe(fleet, from->what == 3 ? NULL : &m);
        assert(r == (needed ? 0 : PERFD_E_STATE) || (needed && r == PERFD_E_NEEDED && perfd_fleet_needed(fleet)));
}

/* The first stream, or one with the host of the subject. */
static int reckon(perfd_fleet *fleet, const perfd_fleet_stream *first, const Message *from) {
        const perfd_count lost[] = { { .reason = "outbox", .count = from->length / 4 } };
        perfd_fleet_reckoning k = PERFD_FLEET_RECKONING_INIT;

        k.host = first ? first->host : from->subject;
        k.route = first ? first->route : "route";
        k.machine = first ? first->machine : from->values[0];
        k.boot = first ? first->boot : from->values[1];
        k.epoch = first ? first->epoch : 1;
        k.sequence = from->length % 256;
        k.matched = from->length;
        k.lost = from->has_value[2] ? lost : NULL;
        k.n_lost = 1;
        k.ended = from->has_value[3];
        return perfd_fleet_reckon(fleet, &k);
}

static void play(perfd_fleet *fleet, Message *from) {
        const perfd_fleet_stream *first = perfd_fleet_get_stream(fleet, 0);
        perfd_fleet_message m = message_of(from);
        int r;

        if (from->what >= 1 && from->what <= 3) {
                describe(fleet, from);
        } else if (from->what == 4) {
                r = reckon(fleet, first, from);
                assert(r == 0 || r == PERFD_E_INVALID);
        } else if (from->what == 5) {
                r = first ? perfd_fleet_forget(fleet, first) : 0;
                assert(r == 0 || r == PERFD_E_STATE);
        } else {
                r = perfd_fleet_take(fleet, &m);
                assert(r == 0 || (r == PERFD_E_NEEDED && perfd_fleet_needed(fleet)));
        }
}

static void check(const perfd_fleet_stream *s) {
        uint64_t sum = s->consumed + s->skipped;

        assert(s->repeated <= s->messages && s->damaged + s->undescribed <= s->messages);
        for (size_t i = 0; i < s->n_lost; i++) {
                assert(s->lost[i].reason[0] || s->lost[i].count > 0);
                sum += s->lost[i].count;
        }
        if (s->balanced)
                assert(s->has_matched && sum == s->matched);
}

/* 5 is left out of what both ways have to have in common: when a stream ends can depend on who has looked at an item. */
static Seen run(const uint8_t *bytes, size_t n, bool by_batches) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
        perfd_fleet_callbacks c = PERFD_FLEET_CALLBACKS_INIT;
        const perfd_fleet_stream *s;
        Input in = { bytes, bytes + n };
        uint64_t consumed = 0;
        bool has_forgotten = false;
        Seen seen = { .items = 0 };
        Message m;
        int r;

        o.from_oldest = n % 2 == 0;
        o.max_streams = 8;
        c.begin = on_begin;
        if (by_batches)
                c.batch = on_batch;
        else
                c.item = on_item;
        c.gap = on_gap;
        c.end = on_end;
        c.refused = on_refused;
        r = perfd_fleet_new(&o, &c, &seen, &seen.fleet);
        assert(r == 0);
        while (next_message(&in, &m)) {
                play(seen.fleet, &m);
                has_forgotten |= m.what == 5;
        }
        for (size_t i = 0; (s = perfd_fleet_get_stream(seen.fleet, i)); i++) {
                check(s);
                consumed += s->consumed;
        }
        assert(has_forgotten || (consumed == seen.items && seen.streams <= o.max_streams));
        perfd_fleet_free(seen.fleet);
        return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
        Seen by_items = run(bytes, n, false), by_batches = run(bytes, n, true);

        /* damaged items are found when they are looked at, which a batch does later */
        if (by_items.refused == 0 && by_batches.refused == 0)
                assert(by_items.items == by_batches.items && by_items.streams == by_batches.streams && by_items.ends == by_batches.ends);
        return 0;
}
