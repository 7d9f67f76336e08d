/* For who reads a configuration: all that is wrong with it, each with its place. One owner, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CONFIG_MISTAKES_MAX 1000 /* kept; those above are counted */
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

typedef struct ConfigMistake {
        char *path;            /* printable (daemon/base/printable.h), whatever a client or a folder calls it */
        unsigned line, column; /* as in ConfigPlace */
        char *text;            /* what was found, what was expected; printable, so one line */
        bool warning;          /* said, but the configuration is valid */
        const char *reason;    /* of a warning: why the host can not open an event now, static; NULL: it is about the text */
        unsigned file, order;
} ConfigMistake;

typedef struct ConfigMistakes {
        ConfigMistake *items; /* in the order of files, lines and columns, once the reader has returned */
        size_t n_items;
        size_t n_errors;   /* of items, those that are no warnings */
        size_t n_left_out; /* not kept, because there are too many; the last item says so */
        int failure;       /* -ENOMEM if one could not be kept: the reader then fails */
} ConfigMistakes;

#define CONFIG_MISTAKES_NULL ((ConfigMistakes){ .items = NULL })

void config_mistakes_deinit(ConfigMistakes *m);

/* For the parts of config/. */
void config_mistakes_add(ConfigMistakes *m, ConfigPlace at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void config_mistakes_add_warning(ConfigMistakes *m, ConfigPlace at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Another one would only be counted, so that no work on its text is worth while. */
static inline bool config_mistakes_is_full(const ConfigMistakes *m) {
        return m->n_items >= CONFIG_MISTAKES_MAX;
}

/* Why an event could not be opened now, which would be pending; for who asks the host. */
void config_mistakes_add_pending(ConfigMistakes *m, ConfigPlace at, const char *reason, const char *text);

/* Puts them in order, says each only once, and how many were left out. 0 or -ENOMEM. */
int config_mistakes_finish(ConfigMistakes *m);

/*
 * "PATH:LINE:COLUMN: [warning: |note: ]TEXT", or "PATH: [warning: ]TEXT" of the file as a whole. As snprintf(3): the length that it has,
 * of which what `size` has room for is written.
 */
size_t config_mistake_text(const ConfigMistake *mistake, char *to, size_t size);
/* The same as a line, whatever its length. */
void config_mistake_print(const ConfigMistake *mistake, FILE *to);
