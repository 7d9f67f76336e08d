/*
 * For readers: how much of a sample is known before it is looked at, and so in how few steps it becomes an item. Three
 * questions are answered once and not for each sample: what the record looks like (by its stream), how the item is written
 * (by its encoding), and who wants it (by its event). sample_path() says which path takes which samples.
 */
#pragma once

/* Each value is a case of the one before it, so that they can be compared. */
typedef enum RecordLayout {
        RECORD_LAYOUT_ANY,  /* parts where attr.sample_type puts them: decode/record.c */
        RECORD_LAYOUT_BASE, /* SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW, nothing else: decode/record-base.h */
} RecordLayout;

typedef enum ItemEncoding {
        ITEM_VARIABLE, /* the sample says where its parts are, or has rare ones: item_encode() */
        ITEM_FIXED,    /* parts at fixed places, no texts but names of threads: item_put_fixed() */
        ITEM_TEMPLATE, /* and the width of its length is known: a copy of a template, with values put in: item_put_template() */
        ITEM_ONE_COPY, /* and all behind the values is one copy of raw bytes: item_put_one_copy() */
} ItemEncoding;

typedef enum RouteShape {
        ROUTES_ANY,       /* of several groups, or with conditions that need a thread's name or the dispatcher */
        ROUTES_ONE_GROUP, /* their masks are one word */
        ROUTES_ONE,       /* one, or none */
} RouteShape;

/* A path has all steps of those before it at hand, for what it cannot take. */
typedef enum SamplePath {
        PATH_GENERAL,     /* reader/take.c: any record */
        PATH_IN_PLACE,    /* reader/drain.c: decoded where it lies */
        PATH_RUN,         /* reader/run.c: many of one stream as one */
        PATH_INTERLEAVED, /* reader/interleaved.c: those of many streams in turns, prefetched */
} SamplePath;

/* The best path that takes all samples of a stream. */
SamplePath sample_path(RecordLayout layout, ItemEncoding encoding, RouteShape routes);
