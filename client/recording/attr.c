/*
 * perf_event_attr of whatever size it was written with: what a larger one has behind the members of Linux 6.18 is stepped over, and what a
 * smaller one lacks is 0. Its bits are one number to us and a row of bitfields to the compiler that wrote them, which fills them from the
 * other end on machines of the other byte order. All of them are one bit, but for precise_ip, whose two keep their order.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/attr.h"
#include "client/recording/damage.h"
#include "client/recording/event-name.h"

#define ATTR_SIZE 136       /* bytes, up to what is read of it: config3 is the last */
#define PRECISE_IP 15       /* the lower of its two bits */
#define GENERIC "type=2,"    /* what event-name.c calls a tracepoint */
#define NAMED_MAX 65536     /* events: the table is gone through for each */
#define NAME_MAX_BYTES 4096 /* of an event's name */

static uint64_t read_bits(Bytes *b) {
        const uint64_t v = bytes_u64(b);
        uint64_t turned = 0;

        for (unsigned i = 0; i < 64; i++) {
                const unsigned from = i == PRECISE_IP || i == PRECISE_IP + 1 ? 2 * PRECISE_IP + 1 - i : i;

                turned |= (v >> (63 - from) & 1) << i;
        }
        return b->swap ? turned : v;
}

void attr_read(Bytes *b, uint64_t size, perfd_recorded_event *e) {
        uint8_t whole[ATTR_SIZE] = { 0 };
        Bytes part = bytes_split(b, size), a = { .at = whole, .end = whole + sizeof(whole), .swap = b->swap };
        size_t n = bytes_left(&part) < sizeof(whole) ? bytes_left(&part) : sizeof(whole);

        if (n > 0)
                memcpy(whole, part.at, n);
        e->attr_size = (uint32_t)size;
        e->type = bytes_u32(&a);
        (void)bytes_u32(&a); /* its size, which the caller knows better */
        e->config = bytes_u64(&a);
        e->sample_period = bytes_u64(&a);
        e->sample_type = bytes_u64(&a);
        e->read_format = bytes_u64(&a);
        e->flags = read_bits(&a);
        e->wakeup_events = bytes_u32(&a);
        e->bp_type = bytes_u32(&a);
        e->config1 = bytes_u64(&a);
        e->config2 = bytes_u64(&a);
        e->branch_sample_type = bytes_u64(&a);
        e->sample_regs_user = bytes_u64(&a);
        e->sample_stack_user = bytes_u32(&a);
        e->clockid = (int32_t)bytes_u32(&a);
        e->sample_regs_intr = bytes_u64(&a);
        e->aux_watermark = bytes_u32(&a);
        e->sample_max_stack = bytes_u16(&a);
        (void)bytes_u16(&a);
        e->aux_sample_size = bytes_u32(&a);
        (void)bytes_u32(&a); /* aux_action */
        e->sig_data = bytes_u64(&a);
        e->config3 = bytes_u64(&a);
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

int event_set_name(perfd_recording *r, Event *e, const char *name, size_t n) {
        char *copy = strndup(name, n < NAME_MAX_BYTES ? n : NAME_MAX_BYTES);

        if (!copy)
                return recording_fail(r, -ENOMEM, "no memory");
        free(e->name);
        e->shown.name = e->name = copy;
        return 0;
}

/* Where nothing names it: as perf calls it, which need not be what it lists first. */
static int event_name_by_numbers(perfd_recording *r, Event *e) {
        char name[EVENT_NAME_SIZE];

        event_name_in_perf(&e->shown, name);
        return event_set_name(r, e, name, strlen(name));
}

int events_add(perfd_recording *r, Bytes *attr, uint64_t size) {
        Event *e;
        int code;

        if (r->n_events == r->events_room) {
                Event *larger = reallocarray(r->events, 2 * r->events_room + 8, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                r->events = larger;
                r->events_room = 2 * r->events_room + 8;
        }
        e = &r->events[r->n_events];
        *e = (Event){ .name = NULL };
        attr_read(attr, size, &e->shown);
        code = event_name_by_numbers(r, e);
        if (code == 0)
                r->n_events++;
        return code;
}

static int take_ids(perfd_recording *r, Event *e, Bytes *ids) {
        size_t n = bytes_left(ids) / sizeof(uint64_t);

        if (n == 0)
                return 0;
        e->shown.ids = e->ids = calloc(n, sizeof(*e->ids));
        if (!e->ids)
                return recording_fail(r, -ENOMEM, "no memory");
        for (size_t i = 0; i < n; i++)
                e->ids[i] = bytes_u64(ids);
        e->shown.n_ids = n;
        return 0;
}

int events_take_ids(perfd_recording *r, Bytes *ids) {
        return take_ids(r, &r->events[r->n_events - 1], ids);
}

int events_name_id(perfd_recording *r, uint64_t id, const char *name, size_t n) {
        for (size_t i = 0; i < r->n_events; i++)
                for (size_t k = 0; k < r->events[i].shown.n_ids; k++)
                        if (r->events[i].ids[k] == id)
                                return event_set_name(r, &r->events[i], name, n);
        return 0;
}

/* u32 n, u32 size of an attr; n times: attr, u32 ids, name, ids. Events are written in the order of the attrs. */
int events_name(perfd_recording *r, Bytes *b, size_t from) {
        const uint32_t n = bytes_u32(b), size = bytes_u32(b);

        for (uint32_t i = 0; i < n && !b->failed; i++) {
                Event *e = i >= from && i < r->n_events ? &r->events[i] : NULL;
                perfd_text name;
                uint32_t n_ids;
                Bytes ids;
                int code = 0;

                (void)bytes_take(b, size);
                n_ids = bytes_u32(b);
                name = bytes_string(b);
                ids = bytes_split(b, (uint64_t)n_ids * sizeof(uint64_t));
                if (!b->failed && e && e->shown.n_ids == 0)
                        code = take_ids(r, e, &ids);
                if (code == 0 && !b->failed && e && name.length > 0)
                        code = event_set_name(r, e, name.bytes, name.length);
                if (code != 0)
                        return code;
        }
        return 0;
}

/* u64 id of a tracepoint, 64 bytes of its name. */
int events_name_types(perfd_recording *r, Bytes *b) {
        while (bytes_left(b) >= PERF_DATA_EVENT_TYPE && r->n_events <= NAMED_MAX) {
                const uint64_t id = bytes_u64(b);
                const char *name = (const char *)bytes_take(b, PERF_DATA_EVENT_TYPE - sizeof(id));
                const size_t n = strnlen(name, PERF_DATA_EVENT_TYPE - sizeof(id));

                for (size_t i = 0; n > 0 && i < r->n_events; i++) {
                        Event *e = &r->events[i];
                        int code;

                        if (e->shown.type != PERF_TYPE_TRACEPOINT || e->shown.config != id || strncmp(e->name, GENERIC, strlen(GENERIC)) != 0)
                                continue;
                        code = event_set_name(r, e, name, n);
                        if (code != 0)
                                return code;
                }
        }
        return 0;
}
