/* For who reads a configuration: the bytes of one file, and what the system says if they cannot be had, at the place of the file. */
#pragma once

#include <sys/stat.h>

#include "config/document/diagnostic.h"

/* "WHAT: strerror(error)" is added. REFUSED_INVALID; -ENOMEM if that is the error. */
int config_file_refuse(ConfigDiagnostics *m, ConfigPlace at, const char *what, int error);
/*
 * The whole regular file at.path, whatever fstat(2) said of its size, and at most one byte more than `most`. REFUSED_INVALID: why
 * not has been added; -ENOMEM. *ret_status is set as soon as the file is open, and else left as it is.
 */
int config_file_read(ConfigDiagnostics *m, ConfigPlace at, size_t most, char **ret_bytes, size_t *ret_length, struct stat *ret_status);
