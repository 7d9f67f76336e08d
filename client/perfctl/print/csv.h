/* For exports: values with commas between them, as RFC 4180 has them, but for the end of a line, which is that of this system. */
#pragma once

#include "client/perfctl/base/output.h"
#include "client/perfd.h"

/*
 * In quotes if it is empty, so that it differs from no value, or has a comma, quotes or the end of a line. Bytes that are no UTF-8 are the
 * characters that they are in JSON. is_terminal: what a terminal would obey is written as \xHH; else it stays as it is.
 */
void csv_put_text(Output *o, perfd_text text, bool is_terminal);

/*
 * Copies whole lines, from the beginning of the file, with so many empty values at the end of each that it has n_columns. Errors of writing
 * are those of the Output; 0 or -errno of read(2).
 */
int csv_copy(Output *o, int fd, size_t n_columns);
