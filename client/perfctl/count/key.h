/*
 * For `count`: from a sample to the bytes by which it is counted, and back to values.
 *
 *     number of the shape, then for each column: length in bytes, that many bytes and zeros up to a multiple of 8
 *
 * All are 64-bit numbers, a length of UINT64_MAX is that of what the sample does not have, and one of UINT64_MAX - 1 that
 * of a text that its probe could not read. A shape is what an event's fields
 * make of the columns: what values are called, and whether they are numbers. Events that are alike in this have one shape.
 */
#pragma once

#include "client/perfctl/count/name.h"
#include "client/perfd.h"

typedef struct KeyShape KeyShape;
typedef struct KeyEvent KeyEvent;

typedef struct Keys {
        const KeyName *columns;
        size_t n_columns;
        const KeyName *const *numbers; /* what is added up, or a histogram is of */
        size_t n_numbers;
        KeyShape *shapes;
        size_t n_shapes;
        KeyEvent *events; /* by id */
        size_t n_events;
        const KeyEvent *last; /* samples of one event often follow each other */
        char **names;         /* of events, each once */
        size_t n_names;
        uint8_t *bytes; /* the key that was made last */
        size_t n_bytes, room;
} Keys;

#define KEY_NUMBERS_MAX 5

/* The names have to live as long as the keys. */
void keys_init(Keys *k, const KeyName *columns, size_t n_columns, const KeyName *const *numbers, size_t n_numbers);
void keys_deinit(Keys *k);
/*
 * A descriptor of the stream, before the first sample that it is for, and what it is to be called. It is not looked at any more
 * afterwards.
 */
void keys_add_event(Keys *k, const perfd_event *event, const char *name);
/* Of a sample, into `bytes`, whose length is a multiple of 8. */
void keys_encode(Keys *k, const perfd_item *item);
/* Of the same: numbers[i]. False: it has none. */
bool keys_number(Keys *k, const perfd_item *item, size_t i, uint64_t *ret_number, bool *ret_is_signed);

/* A column of a key. */
typedef struct KeyCell {
        perfd_value value; /* points into the key; its field is a shape's */
        KeyPart part;      /* KEY_NONE: it is a field's */
        bool is_absent;
} KeyCell;

/* All of its columns. */
void keys_decode(const Keys *k, const uint8_t *key, KeyCell *cells);
