/*
 * For build.c: one written value, checked by its row of the table and put where it goes; and for requests, whose values are
 * the same. Pure, any thread.
 */
#pragma once

#include "config/keys.h"
#include "daemon/base/index.h"
#include "daemon/base/error.h"

/*
 * Sets the value of `k` in `object` (a Config, ConfigTarget, ConfigGroup, ConfigEvent or ConfigRule, as the pattern says), or adds
 * one item to it if it is a list. 0; REFUSED_INVALID: `e` says what was found and what is expected, and at which byte;
 * negative: -ENOMEM. With 0 and a text in `e` the value was repeated, which changes nothing and is worth a warning.
 */
int value_decode(const Key *k, const char *text, void *object, Explanation *e);
/*
 * The same for one more item of a list, found in constant time in `known`, which value_index() has filled with what the list has
 * already. REFUSED_EXHAUSTED: the list is full, of different items.
 */
int value_add(const Key *k, const char *text, void *object, Index *known, Explanation *e);
/* Into a null image. -ENOMEM: still to be deinitialised. */
int value_index(const Key *k, const void *object, Index *ret);
/*
 * The same for who has it from a request: `to` is where the value itself goes, `pattern` as in config_keys[]. A list gets
 * one more item.
 */
int value_decode_to(const char *pattern, const char *text, void *to, Explanation *e);
/* Whether a number may be the value of a KEY_COUNT, KEY_SIZE or KEY_DURATION (ns). 0 or REFUSED_INVALID. */
int value_check_number(const char *pattern, uint64_t number, Explanation *e);

/* Frees what the value of `k` in `object` owns. */
void value_deinit(const Key *k, void *object);
/* Sets every value of `object` that has a default text. -ENOMEM. */
int values_set_defaults(KeyOwner owner, void *object);
/* Frees what all values of `object` own. */
void values_deinit(KeyOwner owner, void *object);
