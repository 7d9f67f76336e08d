/*
 * A sample goes the way that it goes in the daemon: from its parts to the bytes of an item, which are read as those of a stream are. So
 * there is one meaning of formats, and one of items. Most can be spared the bytes (direct.c), and are the same items then.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/item/decode.h"
#include "client/item/task.h"
#include "client/perfd/recorded-item.h"
#include "client/recorded/recorded.h"
#include "client/recording/damage.h"
#include "client/recording/sample.h"

#define SAMPLE 9 /* PERF_RECORD_SAMPLE */
#define REGISTERS ((uint64_t)1 << 12 | (uint64_t)1 << 18) /* PERF_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_INTR */

typedef struct RecordedItems {
        struct perfd_item item;
        Descriptors descriptors;
        Tasks tasks;
        RecordedEvent *events;
        size_t n_events;
        uint8_t *bytes;   /* ITEM_ROOM */
        uint32_t machine; /* whose registers samples have: recorded_machine_of() */
} RecordedItems;

static void items_free(RecordedItems *items) {
        item_deinit(&items->item);
        descriptors_deinit(&items->descriptors);
        tasks_deinit(&items->tasks);
        for (size_t i = 0; i < items->n_events; i++)
                recorded_event_deinit(&items->events[i]);
        free(items->events);
        free(items->bytes);
        free(items);
}

static int items_begin(perfd_recording *r) {
        RecordedItems *items = calloc(1, sizeof(*items));

        if (items)
                items->bytes = malloc(ITEM_ROOM);
        if (!items || !items->bytes || recording_make_scratch(r) != 0) {
                if (items)
                        free(items->bytes);
                free(items);
                return recording_fail(r, -ENOMEM, "no memory");
        }
        items->descriptors = DESCRIPTORS_NULL;
        items->tasks = TASKS_NULL;
        items->item.descriptors = &items->descriptors;
        items->item.tasks = &items->tasks;
        r->items = items;
        r->free_items = items_free;
        return 0;
}

static int describe(perfd_recording *r, const perfd_recorded_sample *s, RecordedEvent *e) {
        Perfd__V1__EventDescriptor *d;
        const perfd_event *added;
        int code = recorded_machine_of(r, &r->items->machine);

        if (code == 0)
                code = recorded_event_init(r, s, e, &d);
        if (code != 0)
                return code;
        code = descriptors_add(&r->items->descriptors, d, &added);
        if (code == 0)
                return 0;
        recorded_event_deinit(e);
        return recording_fail(r, code, code == -ENOMEM ? "no memory" : "event %s cannot be described", s->id.event->name);
}

/* Those of a pipe come while it is read. */
static int find_event(perfd_recording *r, const perfd_recorded_sample *s, RecordedEvent **ret) {
        RecordedItems *items = r->items;
        const size_t index = s->id.index;

        if (index >= items->n_events) {
                RecordedEvent *larger = reallocarray(items->events, r->n_events, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                for (size_t i = items->n_events; i < r->n_events; i++)
                        larger[i] = (RecordedEvent){ .plan = NULL };
                items->events = larger;
                items->n_events = r->n_events;
        }
        *ret = &items->events[index];
        return (*ret)->encode ? 0 : describe(r, s, *ret);
}

/* Of an event that is described: to do that, its format is read, and the record is where it was no more. As recorded_sample_place(). */
static int place_item(perfd_recording *r, const perfd_recorded *record) {
        const Event *of = recording_event_of(r, record);
        const size_t index = of ? (size_t)(of - r->events) : SIZE_MAX;
        const RecordedEvent *e = index < r->items->n_events ? &r->items->events[index] : NULL;

        return e && e->is_direct ? recorded_sample_place(r, record, of, e, &r->items->item) : RECORDED_NOT_DIRECT;
}

/* As items have them they are of the machine that this is compiled for. */
static void set_machine(RecordedItems *items, uint64_t sample_type) {
        if ((sample_type & REGISTERS) == 0 || items->machine == RECORDED_MACHINE_HERE)
                return;
        (void)item_with_parts(&items->item); /* which would be decoded later */
        items->item.parts.user_registers.machine = items->machine;
        items->item.parts.interrupt_registers.machine = items->machine;
}

static int item_of(perfd_recording *r, const perfd_recorded *record, const perfd_item **ret) {
        RecordedItems *items = r->items;
        perfd_recorded_sample s;
        RecordedEvent *e = NULL;
        const uint8_t *bytes, *end;
        int code = place_item(r, record);

        if (code < 0)
                return recording_fail(r, code, "no memory");
        if (code == 0) {
                *ret = &items->item;
                return 0;
        }
        code = perfd_recording_sample(r, record, &s);
        if (code == 0)
                code = find_event(r, &s, &e);
        if (code == 0)
                code = recorded_sample_encode(r, record, e, &s, items->bytes, &bytes, &end);
        if (code != 0)
                return code;
        item_set(&items->item, bytes, end);
        (void)item_indexed(&items->item);
        if (items->item.state == ITEM_WRONG)
                return recording_fail(r, items->item.error, "an item cannot be read: %s", items->item.error == -ENOMEM ? "no memory" : "it is damaged");
        set_machine(items, s.id.has);
        *ret = &items->item;
        return 0;
}

int perfd_recording_item(perfd_recording *r, const perfd_recorded *record, const perfd_item **ret) {
        int code = r->items ? 0 : items_begin(r);

        if (code == 0 && record->type == SAMPLE)
                return item_of(r, record, ret);
        if (code == 0)
                code = recorded_tasks_take(r, record, &r->items->tasks);
        if (code == 0)
                *ret = NULL;
        return code;
}
