/*
 * For report: samples, added up by event and by what they are sorted by. Two recordings whose rows are to be compared share texts and
 * frames, so that one key means the same in both. One thread.
 */
#pragma once

#include "client/perfctl/report/call-tree.h"
#include "client/perfctl/samples/filter.h"
#include "client/perfctl/samples/stack-ids.h"

typedef struct SumsOptions {
        Dimension *keys;
        size_t n_keys;
        bool has_children; /* a row for each function on the stack */
        bool has_graph;
        bool has_inlined;  /* functions that the compiler inlined are frames of their own */
        bool is_of_all;    /* the event is among the keys: one table, in which samples are counted, as their periods have no common unit */
        Filters filters;
} SumsOptions;

/* Of an event, or of all. */
typedef struct SumsGroup {
        uint32_t event; /* text; ID_NONE: all */
        uint32_t number; /* tells it from others of that name: the higher one is the later one */
        RowSum all;     /* also those that filters leave out */
        Rows stacks;    /* samples by what they are sorted by but for frames, and by their stacks, until sums_finish(), or sums_make_calls() */
        Rows rows;
        uint32_t *row_below; /* as of a CallSource; NULL: no calls are asked for */
        size_t n_row_below, row_below_room;
        CallTree calls;
} SumsGroup;

typedef struct Sums {
        SumsOptions *options; /* not owned, as the next two */
        TextIds *texts;
        FrameIds *frames;
        SumsGroup *groups;
        size_t n_groups, last;
        const char *last_event; /* those of the sample that `last` is of; NULL: not known */
        uint32_t last_number;
        uint64_t *key; /* of the sample that is added: n_keys, and room for a stack */
        StackIds stacks;
        bool has_frame_keys, has_symbol_key, has_line_key;
} Sums;

void sums_init(Sums *s, SumsOptions *options, TextIds *texts, FrameIds *frames);
void sums_deinit(Sums *s);

/* How many frames of a stack are looked at, from the innermost on. */
size_t sums_frames_needed(const Sums *s, size_t n_frames);
/* Whether it adds up stacks, and not the innermost frames of samples alone; and the id of one, the same for the same. */
bool sums_has_stacks(const Sums *s);
uint32_t sums_stack(Sums *s, const uint32_t *frames, size_t n_frames);
/* The same as sums_take() of the stack with that id, where there are stacks. */
bool sums_take_stack(Sums *s, const perfd_item *item, const char *event, uint32_t number, uint64_t period, uint32_t stack);
/* event: its name for people, and its number. frames: from the innermost to the outermost, as many as are needed. False: the sum of the periods would be more than 64 bits. */
bool sums_take(Sums *s, const perfd_item *item, const char *event, uint32_t number, uint64_t period, const uint32_t *frames, size_t n_frames);

/* Its parts: values of the keys that are not of frames stand in s->key. */
SumsGroup *sums_group(Sums *s, perfd_text event, uint32_t number);
bool sums_add(Sums *s, SumsGroup *g, bool is_taken, uint64_t period, const uint32_t *frames, size_t n_frames);

/* Once, when all samples were taken: makes the rows. */
void sums_finish(Sums *s);
/* Behind it, where there is a graph: calls below rows that are wanted, as far as they are within the limit. */
void sums_make_calls(Sums *s, SumsGroup *g, double percent, const bool *is_wanted);
