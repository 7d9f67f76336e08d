/* For this folder and recorded/: the formats of tracepoints in the tracing data. */
#pragma once

#include "client/recording/reading.h"

/* The format of a tracepoint. */
typedef struct RecordedFormat {
        const char *group;
        perfd_text name, text; /* text: all of it, as tracefs has it */
        uint64_t id;           /* config of its events */
        uint64_t offset;       /* of text */
} RecordedFormat;

/* 0, or what ends the visit. */
typedef int TracingVisitor(void *userdata, const RecordedFormat *format);

/* Each format of the tracing data that has an id; what is damaged is said. 0; PERFD_E_INVALID: there is none; -ENOMEM, -errno; the visitor's */
int tracing_visit(perfd_recording *r, TracingVisitor *visit, void *userdata);
/* Tracepoints without a name get that of their format. 0; -ENOMEM, -errno */
int tracing_name_events(perfd_recording *r);
