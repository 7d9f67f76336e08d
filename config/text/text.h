/*
 * For everyone who takes a text from a user, by YAML or in a request: what it may hold, the same for both. Names are
 * narrower (name.h), events and numbers have grammars of their own. Pure, any thread.
 */
#pragma once

#include <stddef.h>

typedef enum TextForm {
        TEXT_LINE,  /* one line: paths, names of cgroups, containers, programs */
        TEXT_LINES, /* filters, predicates and fetch args, which may be folded over lines: tab, LF and CR too */
} TextForm;

#define TEXT_MAX 4095 /* bytes: PATH_MAX; longer is nothing that is named */

/*
 * NULL if it may be: UTF-8 that prints (daemon/base/printable.h). Else why not, to follow "found TEXT, ", and the offset of
 * the first byte that is wrong.
 */
const char *text_error(const char *text, TextForm form, size_t *ret_offset);
