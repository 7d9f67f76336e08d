/* For who reads a configuration: all that is wrong with it, each with its place. One owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CONFIG_DIAGNOSTICS_MAX 1000 /* kept; those above are counted */
#define CONFIG_WARNINGS_MAX 500  /* of these: so that there is room for what is wrong */

/* Where something stands. `path` belongs to whoever made the place. */
typedef struct ConfigPlace {
        const char *path;
        unsigned file; /* in the order of reading */
        unsigned line; /* from 1; 0 is the file as a whole */
        unsigned column; /* from 1, in characters; 0 with line 0 */
} ConfigPlace;

/* The one that stands behind the other; a place whose path is NULL is none. */
ConfigPlace config_place_later(ConfigPlace a, ConfigPlace b);

typedef struct ConfigDiagnostic {
        char *path;            /* printable (daemon/base/printable.h), whatever a client or a folder calls it */
        unsigned line, column; /* as in ConfigPlace */
        char *text;            /* what was found, what was expected; printable, so one line */
        bool warning;          /* said, but the configuration is valid */
        const char *reason;    /* of a warning: why the host cannot open an event now, static; NULL: it is about the text */
        unsigned file, order;
} ConfigDiagnostic;

typedef struct ConfigDiagnostics {
        ConfigDiagnostic *items; /* in the order of files, lines and columns, once the reader has returned */
        size_t n_items;
        size_t n_errors;   /* of items, those that are no warnings */
        size_t n_left_out; /* not kept, because there are too many; the last item says so */
        int failure;       /* -ENOMEM if one could not be kept: the reader then fails */
} ConfigDiagnostics;

#define CONFIG_DIAGNOSTICS_NULL ((ConfigDiagnostics){ .items = NULL })

void config_diagnostics_deinit(ConfigDiagnostics *m);

/* For the parts of config/. */
void config_diagnostics_add(ConfigDiagnostics *m, ConfigPlace at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void config_diagnostics_add_warning(ConfigDiagnostics *m, ConfigPlace at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Another one would only be counted, so that no work on its text is worth while. */
static inline bool config_diagnostics_is_full(const ConfigDiagnostics *m) {
        return m->n_items >= CONFIG_DIAGNOSTICS_MAX;
}

/* Why an event could not be opened now, which would be pending; for who asks the host. */
void config_diagnostics_add_pending(ConfigDiagnostics *m, ConfigPlace at, const char *reason, const char *text);

/* Puts them in order, says each only once, and how many were left out. 0 or -ENOMEM. */
int config_diagnostics_finish(ConfigDiagnostics *m);

/*
 * "PATH:LINE:COLUMN: [warning: |note: ]TEXT", or "PATH: [warning: ]TEXT" of the file as a whole. As snprintf(3): the length that it has,
 * of which what `size` has room for is written.
 */
size_t config_diagnostic_text(const ConfigDiagnostic *diagnostic, char *to, size_t size);
/* The same as a line, whatever its length. */
void config_diagnostic_print(const ConfigDiagnostic *diagnostic, FILE *to);
