/* What the samples of an event consist of: the plan of its format, made as the daemon makes those of its own kernel, and a descriptor of it. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recorded/recorded.h"
#include "client/recording/damage.h"
#include "client/recording/event-name.h"
#include "client/recording/ids.h"
#include "client/recording/tracing.h"
#include "daemon/encode/descriptor.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/tracefs/format.h"

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

/* Of a value of a sample. NULL: it does not say which event it counted. */
static const perfd_recorded_event *counted(const perfd_recording *r, const perfd_recorded_sample *s, size_t i) {
        const uint64_t format = s->id.event->read_format;
        const Event *e = format & PERF_FORMAT_ID ? ids_find(r, s->values[i].id) : NULL;

        if (e)
                return &e->shown;
        return format & PERF_FORMAT_GROUP ? NULL : s->id.event;
}

/* What the sample's values are of, which is the same in all of the event: the group, in its order. */
static int add_counters(const perfd_recording *r, const perfd_recorded_sample *s, Perfd__V1__EventDescriptor *d) {
        for (size_t i = 0; i < s->n_values; i++)
                if (!counted(r, s, i))
                        return 0;
        for (size_t i = 0; i < s->n_values; i++) {
                const perfd_recorded_event *e = counted(r, s, i);

                if (event_descriptor_add_counter(d, e->name, event_unit(e), 1) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int describe(perfd_recording *r, const perfd_recorded_sample *s, const RecordedEvent *e, Perfd__V1__EventDescriptor **ret) {
        const perfd_recorded_event *shown = s->id.event;
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
        if (code == 0 && add_counters(r, s, *ret) < 0) {
                perfd__v1__event_descriptor__free_unpacked(*ret, NULL);
                code = -ENOMEM;
        }
        return code == 0 ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

int recorded_event_init(perfd_recording *r, const perfd_recorded_sample *s, RecordedEvent *e, Perfd__V1__EventDescriptor **ret) {
        const perfd_recorded_event *shown = s->id.event;
        Wanted w = { .r = r, .id = shown->config };
        const bool has_fields = shown->type == PERF_TYPE_TRACEPOINT && (shown->sample_type & PERF_SAMPLE_RAW) != 0;
        int code = has_fields ? tracing_visit(r, take_format, &w) : 0;

        if (code < 0) {
                plan_unref(w.plan);
                return code;
        }
        e->plan = w.plan;
        e->encode = encode_plan_new(e->plan, (uint32_t)s->id.index + 1, e->plan ? PAYLOAD_FIELDS : PAYLOAD_RAW, NULL, 0);
        code = e->encode ? describe(r, s, e, ret) : recording_fail(r, -ENOMEM, "no memory");
        if (code == 0)
                e->is_direct = !r->encodes_items && recorded_event_is_direct(r, shown, e->encode, &e->n_first);
        else
                recorded_event_deinit(e);
        return code;
}

void recorded_event_deinit(RecordedEvent *e) {
        encode_plan_unref(e->encode);
        plan_unref(e->plan);
        *e = (RecordedEvent){ .plan = NULL };
}
