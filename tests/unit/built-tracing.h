/* For tests of recordings: the tracing data that say what fields a tracepoint has. */
#pragma once

#include "tests/unit/built-recording.h"

static inline void built_text(Built *b, const char *text) {
        built_u64(b, strlen(text));
        built_bytes(b, text, strlen(text));
}

/* A record HEADER_TRACING_DATA of a pipe, with the format of one event, of the group "group". */
static inline void built_tracing(Built *b, const char *text) {
        const uint8_t order[2] = { b->swap, 8 };
        const size_t at = built_record(b, PERF_DATA_HEADER_TRACING_DATA, 0);
        size_t from;

        built_u32(b, 0);
        built_record_end(b, at);
        from = b->n;
        built_bytes(b, "\027\010\104tracing" "0.6", 14);
        built_bytes(b, order, 2);
        built_u32(b, 4096);
        built_bytes(b, "header_page", 12);
        built_text(b, "of pages");
        built_bytes(b, "header_event", 13);
        built_text(b, "of events");
        built_u32(b, 1);
        built_text(b, "ftrace's own");
        built_u32(b, 1);
        built_bytes(b, "group", 6);
        built_u32(b, 1);
        built_text(b, text);
        from = b->n - from;
        built_zeros(b, (8 - from % 8) % 8);
        {
                const size_t n = b->n;

                b->n = at + 8;
                built_u32(b, (uint32_t)from);
                b->n = n;
        }
}
