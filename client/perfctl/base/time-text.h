/* For lines of a stream: when something happened, in one of three forms. */
#pragma once

#include "client/perfctl/base/output.h"

typedef enum TimeForm {
        TIME_WALL,  /* "Nov 23 20:13:45.123456", local, as journalctl(1) has it */
        TIME_CLOCK, /* seconds and nanoseconds of the stream's clock */
        TIME_DELTA, /* the same since the time before */
} TimeForm;

typedef struct TimeText {
        TimeForm form;
        int64_t wall_offset; /* CLOCK_REALTIME - the stream's clock, ns */
        uint64_t before;     /* TIME_DELTA: the time before; 0: none yet */
        int64_t second;      /* of the words */
        char words[32];      /* TIME_WALL: "Nov 23 20:13:45", TIME_CLOCK: "36082"; "" before the first */
        size_t n_words;
} TimeText;

/* Characters of one on a terminal. */
#define TIME_WIDTH(form) ((size_t)((form) == TIME_WALL ? 22 : (form) == TIME_CLOCK ? 17 : 18))

/* Nanoseconds of the stream's clock. 0, which is no time, is a dash. */
void time_text_put(TimeText *t, Output *o, uint64_t nsec, bool is_padded);
