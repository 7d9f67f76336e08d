/*
 * Globs that clients send, as patterns: `*`, `?`, sets in brackets with ranges, `!` or `^` and the classes of fnmatch(3), and
 * backslashes. What they match is what fnmatch(3) without flags says in the C locale; but its time is the product of pattern and
 * text, with each set read anew for each character, and who sends a glob may send a long one, for many names.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/error.h"
#include "daemon/base/pattern.h"

#define GLOB_MAX 1023      /* bytes */
#define GLOB_SETS_MAX 64   /* different places with a set */
#define GLOB_SEARCHED_MAX 16 /* characters between two stars, if they are not plain: less than a condition may have, for many names */

/* Whether the text is a glob at all, or matches itself alone. */
bool text_is_glob(const char *text);
/* REFUSED_INVALID "bad-name": it is longer than a glob may be, with a position; -ENOMEM */
int glob_compile(const char *text, Pattern **ret, Explanation *e);
bool glob_match(const Pattern *glob, const char *text);
/* Of memory that a compiled one takes at most: bytes. */
size_t glob_size(const char *text);
