/* For `export`: the forms that it writes, a row for each. */
#pragma once

#include <stdio.h>

#include "client/perfctl/samples/sample-source.h"

typedef struct ExportFormat {
        const char *name;  /* of --to */
        bool is_binary;    /* not for a terminal */
        bool has_sums;     /* of stacks, and so --off-cpu can be its sums */
        /*
         * Writes all samples of the source, whose userdata and callbacks are its own. An exit status, after a message if it is not 0;
         * ret_is_whole: what was read of a recording that is damaged is written nevertheless.
         */
        int (*write)(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
} ExportFormat;

/* profile.c: sums of stacks */
int export_folded(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
int export_pprof(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
int export_speedscope(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
/* perfetto.c: each sample */
int export_perfetto(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
/* csv.c, jsonl.c: a line for each sample */
int export_csv(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
int export_jsonl(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole);
