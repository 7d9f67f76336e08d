/* For lines of a stream on a terminal: where one is longer than the terminal is wide, it goes on below itself. */
#pragma once

#include "client/perfctl/base/output.h"

typedef struct LineWrap {
        size_t width;   /* of the terminal; 0: lines may be as long as they are */
        size_t begin;   /* where in the output's memory the line begins, */
        size_t rest;    /* and what of it may be moved: behind that it is parted only at blanks outside of quotes */
        size_t written; /* how often the output's memory was written out then */
} LineWrap;

#define LINE_WRAP_INDENT ((size_t)8) /* of what goes on below */

/* With room in the output's memory for any line that one would read. */
void line_wrap_begin(LineWrap *w, Output *o);
/* From here on it may be parted. */
void line_wrap_from_here(LineWrap *w, const Output *o);
/* Before the line's end. A line that was longer than the output's memory is left to the terminal. */
void line_wrap_end(LineWrap *w, Output *o);
