/* For `top`: samples of a stream or a recording, counted by what they have, and shown again and again. */
#pragma once

#include "client/perfctl/stream/stream-loop.h"
#include "client/perfctl/top/keys.h"
#include "client/perfctl/top/rows.h"

typedef struct TopOptions {
        perfd_subscription subscription;
        const char *by;
        const char *input; /* path of a recording; NULL: live */
        uint64_t interval, duration; /* ns; duration 0: no limit */
        uint64_t count;    /* tables; 0: no limit */
        uint64_t rows;     /* of a table; 0: all */
        bool is_batch, is_total;
        bool has_tables, may_lose; /* as StreamLoop has them */
} TopOptions;

/* What both have. */
typedef struct Top {
        StreamLoop loop;
        Perfctl *p;
        const TopOptions *options;
        Subject *subjects; /* the first is that of --by, others are those that a key chooses */
        TopKeys keys;      /* which of them, and what is looked at */
        Tally tally;
        TopRows rows;      /* of the last window that ended, and of keys.subject */
        bool has_rows;
        FrameNames *names; /* NULL: no subject has frames */
        Kallsyms symbols;
        int64_t wall_offset;
        uint64_t counted;  /* all samples, also those before tally was zeroed */
        uint64_t begun;    /* CLOCK_MONOTONIC, ns: when tally was zeroed */
        uint64_t window_begun, window_length; /* of the one that goes on; of the last one; ns */
        uint64_t next;     /* when it ends; 0: it has not begun */
        uint64_t n_tables;
        size_t n_page;     /* rows that the screen has room for */
        const char **fields; /* that were asked for */
        bool is_told;      /* by a key that it is enough, or by a screen that cannot be opened, with `code` */
        int code;
} Top;

/* Connects to the daemon. An exit status. */
int top_run(Perfctl *p, const TopOptions *options);
/* Of a recording: one table. */
int top_read(Perfctl *p, const TopOptions *options);

/* 0, or PERFCTL_USAGE after a message. */
int top_init(Top *t, Perfctl *p, const TopOptions *options);
void top_deinit(Top *t);
/* The window ends here, and its rows are there. */
void top_turn(Top *t);
/* A table, or documents, of the rows; wall: ns since 1970, or 0. */
void top_print(Top *t, uint64_t wall);
/* The whole screen. */
void top_draw(Top *t, uint64_t now);
