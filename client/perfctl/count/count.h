/* For `count`: samples of a stream, counted by what they have. */
#pragma once

#include "client/perfctl/count/key.h"
#include "client/perfctl/count/map.h"
#include "client/perfctl/events/event-words.h"
#include "client/perfctl/events/kallsyms.h"
#include "client/perfctl/base/perfctl.h"

/* A column of what numbers come to. */
typedef struct CountColumn {
        CountFunction function;
        KeyName name;
} CountColumn;

typedef struct CountOptions {
        perfd_subscription subscription;
        KeyName *columns;
        size_t n_columns;
        CountColumn functions[_COUNT_FUNCTION_MAX];
        size_t n_functions;
        KeyName number;    /* what a histogram is of, if has_number */
        bool has_number;
        uint64_t interval; /* ns; 0: one table, at the end */
        uint64_t duration; /* ns; 0: no limit */
        uint64_t top;      /* rows; 0: all */
        size_t width;      /* of lines; 0: no limit */
        bool is_live;      /* each table in the place of the one before, as large as the terminal */
        bool has_tables;   /* the closing ledger, also if nothing was lost */
        bool may_lose;     /* what was lost is told, and is no failure */
} CountOptions;

/* On a client that is connected. An exit status. */
int count_run(Perfctl *p, const CountOptions *options);

/*
 * What these events have of the names, by the daemon's list; fields: those that are to be asked for, malloc'ed, as long as the names
 * live. 0, or an exit status after a message.
 */
int count_choose_fields(const Perfctl *p, const CountOptions *options, const EventWords *words, const char ***ret_fields,
                        size_t *ret_n_fields);

/* Prints what was counted. May add up rows of `map`, which is to be reset then. symbols: of the kernel's addresses. */
void count_print(Perfctl *p, const CountOptions *options, const Keys *keys, CountMap *map, Kallsyms *symbols);
