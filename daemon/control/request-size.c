/*
 * A MiB of protobuf can be half a million empty messages, which take 100 MiB and a tenth of a second to unpack, and as long again
 * to look at. So they are counted first, where they lie, up to what is too much: a millisecond at most. What is no protobuf is
 * counted as far as it goes: unpacking it says the rest. Here texts have a length too: unpacked, they end at their first NUL.
 */
#include "daemon/control/control.h"

#include <string.h>

#include "proto/perfd.pb-c.h"

enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2, WIRE_32_BITS = 5 };

typedef struct Wire {
        const uint8_t *at, *end;
} Wire;

typedef struct Counted {
        size_t n, most;    /* texts, messages, and what is unknown */
        size_t n_unknown;  /* protobuf-c keeps a copy of each, and a newer client has a few */
        size_t n_numbers;  /* each costs something, also where a later one takes its place */
        uint64_t id;
        const char *text; /* the first one with a NUL in it: its field */
        unsigned position; /* of the NUL, from 1 */
} Counted;

static bool number_take(Wire *w, uint64_t *ret) {
        uint64_t number = 0;

        for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
                uint8_t byte = *w->at++;

                number |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret = number;
                        return true;
                }
        }
        return false;
}

/* What follows the tag. Its bytes, if it is a text, bytes or a message; of a number, the number. */
static bool value_take(Wire *w, unsigned type, Wire *ret_bytes, uint64_t *ret_number) {
        uint64_t length = type == WIRE_64_BITS ? 8 : 4;

        *ret_bytes = (Wire){ .at = NULL };
        *ret_number = 0;
        if (type == WIRE_VARINT)
                return number_take(w, ret_number);
        if (type != WIRE_64_BITS && type != WIRE_32_BITS && (type != WIRE_BYTES || !number_take(w, &length)))
                return false;
        if (length > (uint64_t)(w->end - w->at))
                return false;
        if (type == WIRE_BYTES)
                *ret_bytes = (Wire){ .at = w->at, .end = w->at + length };
        w->at += length;
        return true;
}

static void text_look(Counted *c, const char *field, Wire text) {
        const uint8_t *nul = text.at ? memchr(text.at, 0, (size_t)(text.end - text.at)) : NULL;

        if (!nul || c->text)
                return;
        c->text = field;
        c->position = 1 + (unsigned)(nul - text.at);
}

static bool is_too_many(const Counted *c) {
        return c->n > c->most || c->n_unknown > REQUEST_UNKNOWN_MAX || c->n_numbers > REQUEST_NUMBERS_MAX;
}

/* Until it is too many. As deep as perfd.proto nests. */
static void count(Counted *c, Wire w, const ProtobufCMessageDescriptor *d) {
        uint64_t tag, number;
        Wire bytes;

        while (!is_too_many(c) && w.at < w.end && number_take(&w, &tag) && tag >> 3 <= UINT32_MAX &&
               value_take(&w, tag & 7, &bytes, &number)) {
                const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, (unsigned)(tag >> 3));
                bool is_number = f && f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_BYTES &&
                                 f->type != PROTOBUF_C_TYPE_MESSAGE;

                c->n += !is_number;
                c->n_unknown += !f;
                c->n_numbers += is_number;
                if (f && f->type == PROTOBUF_C_TYPE_STRING)
                        text_look(c, f->name, bytes);
                if (f && f->type == PROTOBUF_C_TYPE_MESSAGE && bytes.at)
                        count(c, bytes, f->descriptor);
                if (f && d == &perfd__v1__request__descriptor && strcmp(f->name, "id") == 0)
                        c->id = number;
        }
}

static bool is_emit(Wire w) {
        uint64_t tag, number;
        Wire inner;

        while (w.at < w.end && number_take(&w, &tag) && value_take(&w, tag & 7, &inner, &number))
                if (tag >> 3 == PERFD__V1__REQUEST__BODY_EMIT)
                        return true;
        return false;
}

static int refuse_many(const Counted *c, Explanation *e) {
        if (c->n_unknown > REQUEST_UNKNOWN_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-values", "the request has more than %zu fields that perfd does not "
                        "know: it is for a newer version, or is not a request", REQUEST_UNKNOWN_MAX);
        if (c->n_numbers > REQUEST_NUMBERS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-values", "the request has more than %zu numbers that are not "
                        "packed: split it into several requests", REQUEST_NUMBERS_MAX);
        return refuse(e, REFUSED_EXHAUSTED, "too-many-values", "the request has more than %zu texts and messages: split it into "
                "several requests", c->most);
}

/* Samples come many at a time, are unpacked once, from the control socket only, and the names of their events are only looked for. */
int request_check_size(const uint8_t *bytes, size_t length, bool may_emit, uint64_t *ret_id, Explanation *e) {
        Wire w = { .at = bytes, .end = bytes + length };
        bool emits = may_emit && is_emit(w);
        Counted c = { .most = emits ? REQUEST_EMIT_VALUES_MAX : REQUEST_VALUES_MAX };

        *ret_id = 0;
        if (emits && length <= c.most) /* each has two bytes at least, but for what is no protobuf */
                return 0;
        count(&c, w, &perfd__v1__request__descriptor);
        *ret_id = c.id;
        if (is_too_many(&c))
                return refuse_many(&c, e);
        if (emits || !c.text)
                return 0;
        (void)refuse(e, REFUSED_INVALID, "bad-text", "%s: contains a NUL character, which would end the text", c.text);
        e->position = c.position;
        return REFUSED_INVALID;
}
