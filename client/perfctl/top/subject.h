/*
 * For `top`: what a row is of, as --by says it: names of `count --by`, and the function that ran. From a sample to the key by which it is
 * counted, and back to what is shown.
 */
#pragma once

#include "client/perfctl/count/rows.h"
#include "client/perfctl/names/frame-names.h"
#include "client/perfctl/print/json.h"

typedef struct Subject {
        const char **words; /* "pid", "comm": headings, and names of JSON */
        size_t n;
        KeyName *columns; /* of the words that are names of `count`, in their order */
        size_t n_columns;
        bool has_function, has_file; /* "symbol", "dso" are among the words */
        Keys keys;
        KeyCell *cells;
        uint8_t *bytes; /* the key that was made last */
        size_t n_bytes, room;
} Subject;

#define SUBJECT_WORDS "symbol, dso, " KEY_PARTS

/* text: "pid,comm". 0, or PERFCTL_USAGE after a message. */
int subject_init(Subject *s, const Perfctl *p, const char *text);
void subject_deinit(Subject *s);
/* Samples are to come with the name of the function that ran. */
bool subject_has_frames(const Subject *s);
/* As keys_add_event(): before the first sample of the event. */
void subject_add_event(Subject *s, const perfd_event *event, const char *name);
/* Of a sample, until the next call; frame: what was running, which lives as long as the subject; NULL: not known. */
const uint8_t *subject_encode(Subject *s, const perfd_item *item, const FrameName *frame, size_t *ret_length);
/* The text of each word, malloc'ed as their list is. symbols: of the kernel's addresses. */
char **subject_cells(Subject *s, const uint8_t *key, Kallsyms *symbols);
void subject_cells_free(const Subject *s, char **cells);
/* The members `key` and, of numbers that have some, `names`. */
void subject_put_json(Subject *s, Json *j, const uint8_t *key);
