/* What the samples of an event consist of: the plan of its format, made as the daemon makes those of its own kernel, and a descriptor of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/recorded/recorded.h"
#include "daemon/encode/descriptor.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/tracefs/format.h"

#define TRACEPOINT 2                        /* PERF_TYPE_TRACEPOINT */
#define FORMAT_TEXT_MAX ((size_t)256 << 10) /* bytes: the longest of Linux has some 40 KiB */
#define PLAN_FIXED_MAX ((size_t)640 << 10)  /* bytes of its fixed numbers in an item: 8 for each of the largest record's */

typedef struct Wanted {
        perfd_recording *r;
        uint64_t id;
        Plan *plan;
} Wanted;

static int refuse_format(perfd_recording *r, const RecordedFormat *f, const char *why) {
        return recording_damage(r, f->offset, "the format of %s:%.*s: %s", f->group, (int)f->name.length, f->name.bytes, why);
}

static int take_format(void *userdata, const RecordedFormat *f) {
        Wanted *w = userdata;
        Explanation e = EXPLANATION_NULL;
        size_t sum = 0;
        int code;

        if (f->id != w->id || w->plan)
                return 0;
        if (f->text.length > FORMAT_TEXT_MAX)
                return refuse_format(w->r, f, "it has more than 262144 bytes");
        code = format_parse(f->group, f->text.bytes, f->text.length, &w->plan, &e);
        if (code < 0)
                return recording_fail(w->r, -ENOMEM, "no memory");
        if (code > 0)
                return refuse_format(w->r, f, e.text);
        for (size_t i = 0; i < w->plan->n_fields; i++)
                sum += w->plan->fields[i].count * (field_is_number(&w->plan->fields[i]) ? sizeof(uint64_t) : 1);
        if (sum <= PLAN_FIXED_MAX)
                return 0;
        w->plan = plan_unref(w->plan);
        return refuse_format(w->r, f, "its fields have more bytes than a record can have");
}

static int describe(perfd_recording *r, const perfd_recorded_event *shown, const RecordedEvent *e,
                    Perfd__V1__EventDescriptor **ret) {
        const bool is_by_frequency = (shown->flags & PERFD_ATTR_FREQ) != 0;
        char name[EVENT_NAME_SIZE], *joined = NULL;
        int code = 0;

        event_name_of(shown, name);
        if (e->plan && asprintf(&joined, "%s:%s", e->plan->group, e->plan->name) < 0)
                return recording_fail(r, -ENOMEM, "no memory");
        if (event_descriptor_new(e->encode, shown->name, joined ? joined : name, is_by_frequency ? 0 : shown->sample_period,
                                 is_by_frequency ? shown->sample_period : 0, event_unit(shown), ret) < 0)
                code = -ENOMEM;
        free(joined);
        return code == 0 ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

int recorded_event_init(perfd_recording *r, size_t index, RecordedEvent *e, Perfd__V1__EventDescriptor **ret) {
        const perfd_recorded_event *shown = &r->events[index].shown;
        Wanted w = { .r = r, .id = shown->config };
        int code = shown->type == TRACEPOINT ? tracing_visit(r, take_format, &w) : 0;

        if (code < 0) {
                plan_unref(w.plan);
                return code;
        }
        e->plan = w.plan;
        e->encode = encode_plan_new(e->plan, (uint32_t)index + 1, e->plan ? PAYLOAD_FIELDS : PAYLOAD_RAW, NULL, 0);
        code = e->encode ? describe(r, shown, e, ret) : recording_fail(r, -ENOMEM, "no memory");
        if (code == 0)
                e->is_direct = !r->encodes_items && recorded_event_is_direct(r, shown, e->encode);
        else
                recorded_event_deinit(e);
        return code;
}

void recorded_event_deinit(RecordedEvent *e) {
        encode_plan_unref(e->encode);
        plan_unref(e->plan);
        *e = (RecordedEvent){ .plan = NULL };
}
