/*
 * Tracing data: the formats of tracepoints as tracefs of the recording's machine had them, each a text in a list of lists. Nothing else
 * of it is needed. Source: trace-event-info.c of perf; trace-cmd.dat(5), version 6.
 *
 *     23 8 68 "tracing" | version, 0 | big-endian u8 | bytes of a long u8 | page size u32
 *     "header_page" 0 | n u64 | text | "header_event" 0 | n u64 | text
 *     n u32, of ftrace's own:             n u64 | text
 *     n u32, of groups:  name, 0 | n u32:  n u64 | text
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/attr.h"
#include "client/recording/damage.h"
#include "client/recording/event-name.h"
#include "client/recording/features.h"
#include "client/recording/tracing.h"

#define MAGIC "\027\010\104tracing"
#define TRACEPOINT 2           /* PERF_TYPE_TRACEPOINT */
#define GENERIC "type=2,"      /* what event-name.c calls one */
#define HEAD_MAX ((size_t)300) /* bytes in which its name and id are */

static const char *take_string(Bytes *b) {
        const size_t n = strnlen((const char *)b->at, bytes_left(b));

        if (n == bytes_left(b)) {
                bytes_fail(b, "has a name that does not end");
                return NULL;
        }
        return (const char *)bytes_take(b, n + 1);
}

static void skip_head(Bytes *b, bool is_swapped) {
        const uint8_t *magic = bytes_take(b, sizeof(MAGIC) - 1), *order;

        if (magic && memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
                bytes_fail(b, "does not begin as tracing data does");
        (void)take_string(b);
        order = bytes_take(b, 2);
        if (order && (order[0] != 0) != ((__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != is_swapped))
                bytes_fail(b, "is of another byte order than the recording");
        (void)bytes_u32(b);
        for (int i = 0; i < 2; i++) {
                (void)take_string(b);
                (void)bytes_take(b, bytes_u64(b));
        }
}

static void skip_own_formats(Bytes *b) {
        const uint32_t n = bytes_u32(b);

        for (uint32_t i = 0; i < n && !b->failed; i++)
                (void)bytes_take(b, bytes_u64(b));
}

/* "name: N", "ID: N" begin it. */
static bool read_head(const char *text, size_t n, perfd_text *name, uint64_t *id) {
        static const char before_name[] = "name: ", before_id[] = "\nID: ";
        const size_t n_head = n < HEAD_MAX ? n : HEAD_MAX;
        const char *line = memchr(text, '\n', n_head);
        char digits[24] = "";
        size_t left;

        if (!line || n < sizeof(before_name) || memcmp(text, before_name, sizeof(before_name) - 1) != 0)
                return false;
        *name = (perfd_text){ .bytes = text + sizeof(before_name) - 1, .length = (size_t)(line - text) - (sizeof(before_name) - 1) };
        left = n_head - (size_t)(line - text);
        if (left < sizeof(before_id) || memcmp(line, before_id, sizeof(before_id) - 1) != 0)
                return false;
        left -= sizeof(before_id) - 1;
        memcpy(digits, line + sizeof(before_id) - 1, left < sizeof(digits) - 1 ? left : sizeof(digits) - 1);
        *id = strtoull(digits, NULL, 10);
        return *digits >= '0' && *digits <= '9';
}

static int visit_format(Bytes *b, const char *group, TracingVisitor *visit, void *userdata) {
        const uint64_t n = bytes_u64(b);
        const uint64_t offset = b->offset;
        const char *text = (const char *)bytes_take(b, n);
        RecordedFormat f = { .group = group, .offset = offset };

        if (!text)
                return 0;
        f.text = (perfd_text){ .bytes = text, .length = (size_t)n };
        if (n == 0 || !read_head(text, (size_t)n, &f.name, &f.id))
                return 0; /* of no event that has an id */
        return visit(userdata, &f);
}

int tracing_visit(perfd_recording *r, TracingVisitor *visit, void *userdata) {
        Bytes b;
        int code = feature_get(r, PERF_DATA_FEATURE_TRACING_DATA, &b);
        uint32_t n_groups;

        if (code != 0)
                return code;
        skip_head(&b, r->is_swapped);
        skip_own_formats(&b);
        n_groups = bytes_u32(&b);
        for (uint32_t i = 0; i < n_groups && !b.failed && code == 0; i++) {
                const char *group = take_string(&b);
                const uint32_t n = bytes_u32(&b);

                for (uint32_t k = 0; group && k < n && !b.failed && code == 0; k++)
                        code = visit_format(&b, group, visit, userdata);
        }
        return code != 0 ? code : recording_damage_of(r, &b, "section TRACING_DATA");
}

/* ---- names --------------------------------------------------------------------------------------------------------------------- */

static int name_event(void *userdata, const RecordedFormat *f) {
        perfd_recording *r = userdata;
        char name[EVENT_NAME_SIZE * 4];
        int code = 0;

        (void)snprintf(name, sizeof(name), "%s:%.*s", f->group, (int)f->name.length, f->name.bytes);
        for (size_t i = 0; i < r->n_events && code == 0; i++) {
                const perfd_recorded_event *e = &r->events[i].shown;

                if (e->type == TRACEPOINT && e->config == f->id && strncmp(e->name, GENERIC, strlen(GENERIC)) == 0)
                        code = event_set_name(r, &r->events[i], name, strlen(name));
        }
        return code;
}

int tracing_name_events(perfd_recording *r) {
        bool lacks = false;

        for (size_t i = 0; i < r->n_events; i++)
                lacks = lacks || strncmp(r->events[i].shown.name, GENERIC, strlen(GENERIC)) == 0;
        return lacks && recording_has(r, PERF_DATA_FEATURE_TRACING_DATA) ? tracing_visit(r, name_event, r) : 0;
}
