/* Which samples are meant, and for report of those by frame which rows. One thread. */
#pragma once

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/samples/dimension.h"

typedef struct NumberRange {
        uint64_t first, last;
} NumberRange;

/* One of several words has to fit: globs of texts, "3" or "0-3" of numbers. */
typedef struct Filter {
        char *name; /* of the dimension */
        Dimension dimension;
        const char **words;
        size_t n_words;
        NumberRange *ranges; /* of a number, n_words */
        uint8_t *verdicts;   /* by id of the text: 0 is not known */
        uint32_t n_verdicts;
} Filter;

typedef struct Filters {
        Filter *list;
        size_t n;
        bool has_frames, has_lines; /* one is of frames; of their lines */
} Filters;

/* name: of its dimension. option: for messages. 0, or PERFCTL_USAGE after a message. */
int filters_add(const Perfctl *p, Filters *f, const char *option, const char *name, const char *words);
/* The same of "KEY=VALUE,...". */
int filters_add_pair(const Perfctl *p, Filters *f, const char *option, const char *pair);
/* Of those options of the verb that are called as their dimension, and of all --only. */
int filters_add_options(const Perfctl *p, Filters *f, const char *const *names, size_t n);
void filters_deinit(Filters *f);

/* What is not of frames. */
bool filters_take_sample(Filters *f, TextIds *texts, const perfd_item *item, const char *event);
/* What is. */
bool filters_take_frame(Filters *f, const TextIds *texts, const FrameId *frame);
