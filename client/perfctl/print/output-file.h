/* For verbs that write a file beside what they say: it has its name when it is whole, and what had that name before is FILE.old. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "client/perfctl/base/perfctl.h"

typedef struct OutputFile {
        FILE *out;
        const char *path; /* "-": stdout */
        char *part;       /* the temporary name; NULL: stdout */
        mode_t limit;     /* permissions that the file may have, whatever the umask is */
} OutputFile;

#define OUTPUT_FILE_NULL ((OutputFile){ .out = NULL })

/* Both are the same file. output: NULL, or "-": no. */
bool output_is_input(const char *output, const char *input);
/* path lives as long as the file. 0, or PERFCTL_FAILED after a message. */
int output_file_open(const Perfctl *p, const char *path, OutputFile *ret);
/*
 * What is made of `input` nobody may read who may not read that: for each input, "-" is stdin. One that cannot be asked leaves it to its owner;
 * NULL, and a pipe, say nothing.
 */
void output_file_limit(OutputFile *f, const char *input);
/* Gives it its name if it is whole, and takes it away if not, for which whoever wrote it has said why. 0, or PERFCTL_FAILED after a message. */
int output_file_close(const Perfctl *p, OutputFile *f, bool is_whole);
/* On stderr, behind the close: what is there now, and its size, as record says it of recordings. Nothing of stdout. */
void output_file_tell(const Perfctl *p, const char *path);
/* What writing to it came to: that nobody reads stdout any more is no failure. 0 or the error. */
int output_file_check(FILE *out, int error);
