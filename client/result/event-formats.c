/* What a recording has to know of events, whose texts stay the message's. */
#include <errno.h>

#include "client/result/result.h"

static perfd_text text_of(ProtobufCBinaryData bytes) {
        return (perfd_text){ .bytes = bytes.len > 0 ? (const char *)bytes.data : "", .length = bytes.len };
}

int result_add_event_formats(perfd_result *result, const Perfd__V1__EventFormatsReply *m) {
        perfd_event_format *rows = arena_push(&result->arena, m->n_events, sizeof(*rows));
        perfd_format_host *host = arena_push(&result->arena, 1, sizeof(*host));

        if (!rows || !host)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_events; i++) {
                const Perfd__V1__EventFormat *f = m->events[i];

                rows[i] = (perfd_event_format){ .id = f->id, .has_attr = f->has_attr, .type = f->type, .bp_type = f->bp_type,
                                                .config = f->config, .config1 = f->config1, .config2 = f->config2,
                                                .tracepoint = f->tracepoint, .format = text_of(f->format) };
        }
        *host = (perfd_format_host){ .header_page = text_of(m->header_page), .header_event = text_of(m->header_event),
                                     .page_bytes = m->page_bytes, .long_bytes = m->long_bytes, .big_endian = m->big_endian,
                                     .machine = m->machine, .n_cpus = m->n_cpus, .n_online_cpus = m->n_online_cpus };
        result->event_formats = rows;
        result->n_event_formats = m->n_events;
        result->format_host = host;
        return 0;
}
