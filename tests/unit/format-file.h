/* For tests: the formats in tests/unit/formats, as text and as Plans. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kernel/tracefs/format.h"

#define FORMAT_FILE_MAX ((size_t)64 * 1024)

static inline char *format_file_read(const char *name, size_t *ret_length) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[4096], *text = malloc(FORMAT_FILE_MAX);

        (void)snprintf(path, sizeof(path), "%s/%s", FORMATS, name);
        f = fopen(path, "re");
        if (!f || !text) {
                perror(path);
                exit(EXIT_FAILURE);
        }
        *ret_length = fread(text, 1, FORMAT_FILE_MAX, f);
        return text;
}

/* name: GROUP.NAME */
static inline Plan *format_file_plan(const char *name) {
        Explanation e = EXPLANATION_NULL;
        Plan *p = NULL;
        size_t length;
        _cleanup_free_ char *text = format_file_read(name, &length), *group = strndup(name, strcspn(name, "."));
        int code = format_parse(group, text, length, &p, &e);

        if (code != 0) {
                fprintf(stderr, "%s: %d %s\n", name, code, e.text);
                exit(EXIT_FAILURE);
        }
        return p;
}
