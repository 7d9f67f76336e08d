/* For `top`: rows as a table, on a screen or below each other, and as JSON. */
#pragma once

#include "client/perfctl/top/rows.h"

/*
 * `n` rows from `first` on, and what stands for those that are not shown; human: with a heading and in columns, in lines of `width`, 0: no
 * limit.
 */
void top_put_table(Output *o, const Subject *subject, const TopLook *look, const TopRows *rows, size_t first, size_t n, bool human, size_t width);
/* A document for each row, and one for `others`. */
void top_put_json(Output *o, Subject *subject, const TopLook *look, const TopRows *rows, const Tally *tally);
