/* Instants with their fields, and counters: the events of tracks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/perfetto-packets.h"

enum { EVENT_CATEGORY_IIDS = 3, EVENT_DEBUG_ANNOTATIONS = 4, EVENT_TYPE = 9, EVENT_NAME_IID = 10, EVENT_TRACK_UUID = 11, EVENT_COUNTER_VALUE = 30,
       EVENT_DOUBLE_COUNTER_VALUE = 44, EVENT_CALLSTACK_IID = 56 };
enum { TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { ANNOTATION_NAME_IID = 1, ANNOTATION_BOOL = 2, ANNOTATION_UINT = 3, ANNOTATION_INT = 4, ANNOTATION_STRING = 6, ANNOTATION_POINTER = 7,
       ANNOTATION_DICT_ENTRIES = 11, ANNOTATION_ARRAY_VALUES = 12 };
enum { INTERNED_CATEGORIES = 1, INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3 };

static uint64_t field_name(PerfettoWriter *w, PerfettoText name) {
        return perfetto_name(w, 0, NAME_FIELD, INTERNED_ANNOTATION_NAMES, name);
}

static void put_number(MessageWriter *m, PerfettoKind kind, uint64_t number) {
        switch (kind) {
        case PERFETTO_SIGNED:
                message_put_number(m, ANNOTATION_INT, number);
                return;
        case PERFETTO_BOOL:
                message_put_number(m, ANNOTATION_BOOL, number != 0);
                return;
        case PERFETTO_POINTER:
                message_put_number(m, ANNOTATION_POINTER, number);
                return;
        default:
                message_put_number(m, ANNOTATION_UINT, number);
        }
}

static void put_field(PerfettoWriter *w, const PerfettoField *f) {
        size_t at = message_open(&w->packet, EVENT_DEBUG_ANNOTATIONS), member;

        message_put_number(&w->packet, ANNOTATION_NAME_IID, field_name(w, f->name));
        if (f->kind == PERFETTO_TEXT)
                message_put_string(&w->packet, ANNOTATION_STRING, f->text.bytes, f->text.n);
        else if (!f->is_list)
                put_number(&w->packet, f->kind, f->numbers[0]);
        else
                for (size_t i = 0; i < f->n_numbers; i++) {
                        member = message_open(&w->packet, ANNOTATION_ARRAY_VALUES);
                        put_number(&w->packet, f->kind, f->numbers[i]);
                        message_close(&w->packet, member);
                }
        message_close(&w->packet, at);
}

/* A number stays one, so that queries can count with it; what it is called stands beside it, as in the JSON of perfctl. */
static void put_called(PerfettoWriter *w, const PerfettoField *fields, size_t n) {
        size_t at = 0, entry;

        for (size_t i = 0; i < n; i++) {
                if (fields[i].called.n == 0)
                        continue;
                if (at == 0) {
                        at = message_open(&w->packet, EVENT_DEBUG_ANNOTATIONS);
                        message_put_number(&w->packet, ANNOTATION_NAME_IID, field_name(w, (PerfettoText){ .bytes = "names", .n = 5 }));
                }
                entry = message_open(&w->packet, ANNOTATION_DICT_ENTRIES);
                message_put_number(&w->packet, ANNOTATION_NAME_IID, field_name(w, fields[i].name));
                message_put_string(&w->packet, ANNOTATION_STRING, fields[i].called.bytes, fields[i].called.n);
                message_close(&w->packet, entry);
        }
        if (at > 0)
                message_close(&w->packet, at);
}

int perfetto_put_instant(PerfettoWriter *w, const PerfettoMoment *m, PerfettoText category, PerfettoText name, const PerfettoField *fields,
                         size_t n_fields, const PerfettoFrame *frames, size_t n_frames) {
        uint64_t uuid, stack;
        size_t at;
        int r;

        perfetto_limit(w);
        r = perfetto_moment_track(w, m, &uuid);
        if (r < 0)
                return r;
        perfetto_begin_at(w, 0, m->time);
        at = message_open(&w->packet, PACKET_TRACK_EVENT);
        message_put_number(&w->packet, EVENT_TYPE, TYPE_INSTANT);
        message_put_number(&w->packet, EVENT_TRACK_UUID, uuid);
        if (category.n > 0)
                message_put_number(&w->packet, EVENT_CATEGORY_IIDS, perfetto_name(w, 0, NAME_CATEGORY, INTERNED_CATEGORIES, category));
        message_put_number(&w->packet, EVENT_NAME_IID, perfetto_name(w, 0, NAME_EVENT, INTERNED_EVENT_NAMES, name));
        for (size_t i = 0; i < n_fields; i++)
                put_field(w, &fields[i]);
        put_called(w, fields, n_fields);
        stack = perfetto_stack(w, 0, frames, n_frames);
        if (stack > 0)
                message_put_number(&w->packet, EVENT_CALLSTACK_IID, stack);
        message_close(&w->packet, at);
        return perfetto_end(w);
}

int perfetto_put_counter(PerfettoWriter *w, const PerfettoMoment *m, const PerfettoCounter *counter) {
        uint64_t uuid;
        size_t at;
        int r;

        perfetto_limit(w);
        r = perfetto_counter_track(w, m, counter, &uuid);
        if (r < 0)
                return r;
        perfetto_begin_at(w, 0, m->time);
        at = message_open(&w->packet, PACKET_TRACK_EVENT);
        message_put_number(&w->packet, EVENT_TYPE, TYPE_COUNTER);
        message_put_number(&w->packet, EVENT_TRACK_UUID, uuid);
        if (counter->is_whole)
                message_put_number(&w->packet, EVENT_COUNTER_VALUE, counter->value);
        else
                message_put_double(&w->packet, EVENT_DOUBLE_COUNTER_VALUE, counter->number);
        message_close(&w->packet, at);
        return perfetto_end(w);
}
