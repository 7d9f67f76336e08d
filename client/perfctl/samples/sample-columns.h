/* For script: the columns that --fields chooses, as perf-script(1) calls them, or fields of the events. One thread. */
#pragma once

#include "client/perfctl/count/name.h"
#include "client/perfctl/samples/sample-source.h"

typedef enum ColumnKind {
        COLUMN_COMM,
        COLUMN_TID,
        COLUMN_PID,
        COLUMN_TIME,
        COLUMN_CPU,
        COLUMN_EVENT,
        COLUMN_PERIOD,
        COLUMN_ADDRESS, /* of memory */
        COLUMN_TRACE,   /* all fields */
        COLUMN_IP,
        COLUMN_SYMBOL,
        COLUMN_PLACE,   /* the symbol, and how far from its beginning */
        COLUMN_DSO,
        COLUMN_LINE,    /* of the source */
        N_COLUMN_NAMES,
        COLUMN_FIELD = N_COLUMN_NAMES, /* of an event */
} ColumnKind;

#define SAMPLE_COLUMN_NAMES "comm, tid, pid, time, cpu, event, period, addr, trace, ip, sym, symoff, dso, srcline"

typedef struct SampleColumn {
        ColumnKind kind;
        const char *text; /* as it is called */
        KeyName name;     /* of a field */
        bool was_found;   /* a sample has had the field */
        size_t width;     /* of the longest cell so far, and of its heading */
} SampleColumn;

typedef struct SampleColumns {
        SampleColumn *list;
        size_t n;
        const char **words, **defaults; /* which the names point into */
        bool is_padded;     /* on a terminal; else tabs are between columns */
        bool has_calls;     /* below a sample the frames that called its first one, in the columns of frames */
        bool has_inlined;   /* functions that were inlined have lines of their own; else the function that they are in has the source line of the address */
        bool has_heading;   /* it was printed */
        Output *cell;       /* in which one is made */
} SampleColumns;

/* What "+srcline" adds to and "-ip" takes away from. */
#define SAMPLE_COLUMNS_DEFAULT "comm,tid,cpu,time,event,period,trace,ip,sym,dso"

/* words: "comm,ip,sym", or "+srcline,-ip". 0, or PERFCTL_USAGE after a message; has to be deinitialized in any case. */
int sample_columns_init(SampleColumns *c, const Perfctl *p, const char *words);
void sample_columns_deinit(SampleColumns *c);

/* Frames have to be named for it, with lines of the source. */
bool sample_columns_have_names(const SampleColumns *c);
bool sample_columns_have_lines(const SampleColumns *c);

void sample_columns_print(SampleColumns *c, Output *o, const SourceSample *sample);
/* Behind all samples: a field that none has had is a mistake in its name. 0, or PERFCTL_FAILED after a message. */
int sample_columns_check(const SampleColumns *c, const Perfctl *p, const char *input);
