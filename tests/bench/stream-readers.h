/* For bench-client: programs that read a stream, each in another way. */
#pragma once

#include "tests/bench/stream-printers.h"

/* How a stream is read, and what of each item. */
typedef enum StreamReading {
        READ_BARE_SKIP, /* without the library: from item to item by their lengths */
        READ_BARE_SUM,  /* the same, and the time and all numbers, at their known places */
        READ_NONE,      /* by callback, which only counts */
        READ_FIELDS,    /* every field, by its number */
        READ_ALL,       /* the same, and time, CPU, thread and its name */
        READ_BY_NAME,   /* the same, the fields by their names */
        READ_BATCHES,   /* by batches, whose items are only counted */
        READ_HEADS,     /* the same; sums of their times, and how many are of each event */
        READ_COLUMN,    /* the same as READ_BATCHES, and the sum of one column: `id`, or `prev_pid` */
        READ_COLUMNS,   /* the same of all columns */
        READ_LINES,     /* by callback, which prints a line of text */
        READ_JSON,      /* a line of JSON */
        READ_BARE_LINES, /* without a stream: lines that were made before, each copied to where large writes are made of them */
        READ_BARE_JSON,
} StreamReading;

typedef struct StreamReader {
        StreamReading reading;
        Feed *feed;
        perfd_client *client;
        RingReader ring;
        StreamPrinter printer; /* of those that print */
        uint64_t n_items, sum;
} StreamReader;

void stream_reader_init(StreamReader *r, StreamReading reading, Feed *feed);
void stream_reader_deinit(StreamReader *r);
/* All that was sent. */
void stream_reader_read(StreamReader *r);
/* It has seen so many items since the last time, and something in them. */
void stream_reader_check(StreamReader *r, uint64_t n_items);
