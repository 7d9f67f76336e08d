/*
 * Globs that clients send, as patterns: `*`, `?`, sets in brackets with ranges, `!` or `^` and the classes of fnmatch(3), and
 * backslashes. They match like fnmatch(3) without flags in the C locale. fnmatch(3) itself takes time proportional to pattern times
 * text, and parses each set again for each character; a client can send a long glob for many names.
 */
#pragma once

#include <stdbool.h>

#include "daemon/base/error.h"
#include "daemon/base/pattern.h"

#define GLOB_MAX 1023      /* bytes */
#define GLOB_SETS_MAX 64   /* different places with a set */
#define GLOB_SEARCHED_MAX 16 /* characters between two stars, if they are not plain: less than a condition may have, for many names */

/* Whether the text is a glob; otherwise it only matches itself. */
bool text_is_glob(const char *text);
/* REFUSED_INVALID "bad-name", with the position: the glob exceeds a limit; -ENOMEM */
int glob_compile(const char *text, Pattern **ret, Explanation *e);
/*
 * For files that people write: REFUSED_INVALID "bad-name", with the position, if the text is hardly what was meant, because a [ or a last
 * backslash is taken for itself. glob_compile() takes it, as fnmatch(3) does.
 */
int glob_check(const char *text, Explanation *e);
bool glob_match(const Pattern *glob, const char *text);
/* An upper bound of the memory of the compiled glob, in bytes. */
size_t glob_size(const char *text);
