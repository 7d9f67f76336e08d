/* perf_event_attr, and what names events. */
#include "client/recording-writer/writer.h"

void attr_put(Buffer *b, const perfd_recorded_event *e) {
        const size_t from = b->n;

        buffer_put_u32(b, e->type);
        buffer_put_u32(b, ATTR_WRITTEN);
        buffer_put_u64(b, e->config);
        buffer_put_u64(b, e->sample_period);
        buffer_put_u64(b, e->sample_type);
        buffer_put_u64(b, e->read_format);
        buffer_put_u64(b, e->flags);
        buffer_put_u32(b, e->wakeup_events);
        buffer_put_u32(b, e->bp_type);
        buffer_put_u64(b, e->config1);
        buffer_put_u64(b, e->config2);
        buffer_put_u64(b, e->branch_sample_type);
        buffer_put_u64(b, e->sample_regs_user);
        buffer_put_u32(b, e->sample_stack_user);
        buffer_put_u32(b, (uint32_t)e->clockid);
        buffer_put_u64(b, e->sample_regs_intr);
        buffer_put_u32(b, e->aux_watermark);
        buffer_put_u16(b, e->sample_max_stack);
        buffer_put_u16(b, 0);
        buffer_put_u32(b, e->aux_sample_size);
        buffer_put_u32(b, 0);
        buffer_put_u64(b, e->sig_data);
        if (!b->failed)
                buffer_put_zeros(b, ATTR_WRITTEN - (b->n - from));
}

void attrs_put_desc(Buffer *b, const perfd_recording_writer *w) {
        buffer_put_u32(b, (uint32_t)w->n_events);
        buffer_put_u32(b, ATTR_WRITTEN);
        for (size_t i = 0; i < w->n_events; i++) {
                const perfd_recorded_event *e = &w->events[i].event;

                attr_put(b, e);
                buffer_put_u32(b, (uint32_t)e->n_ids);
                buffer_put_string(b, e->name, strlen(e->name));
                buffer_put(b, e->ids, e->n_ids * sizeof(*e->ids));
        }
}
