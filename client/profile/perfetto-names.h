/*
 * For perfetto.c: what a sequence of packets has said so far, and refers to by number from then on. All kinds have one table; numbers are
 * from 1, and the same content of the same kind has the same.
 */
#pragma once

#include "client/profile/id-table.h"

typedef enum NameKind {
        NAME_CATEGORY,
        NAME_EVENT,
        NAME_FIELD,
        NAME_FUNCTION,
        NAME_PATH,
        NAME_BUILD_ID,
        NAME_MAPPING,
        NAME_FRAME,
        NAME_FRAME_KEY,
        NAME_CALLSTACK,
        NAME_TRACK,
        N_NAME_KINDS,
} NameKind;

typedef struct NameEntry {
        size_t at, n; /* its content */
        NameKind kind;
        uint64_t number;
} NameEntry;

typedef struct PerfettoNames {
        IdTable table;
        NameEntry *entries;
        size_t entries_room;
        uint32_t n_entries;
        char *content;
        size_t n_content, content_room;
        uint64_t seed;
        uint64_t numbers[N_NAME_KINDS];
} PerfettoNames;

#define PERFETTO_NAMES_NULL ((PerfettoNames){ .entries = NULL })

void perfetto_names_deinit(PerfettoNames *names);
/* Bytes of memory. */
size_t perfetto_names_size(const PerfettoNames *names);

/* False: it is not known. */
bool perfetto_names_find(const PerfettoNames *names, NameKind kind, const void *content, size_t n, uint64_t *ret_number);
/* What was not found; with a number of its own kind, or the number given if that is not 0. 0; -ENOMEM. */
int perfetto_names_add(PerfettoNames *names, NameKind kind, const void *content, size_t n, uint64_t number, uint64_t *ret_number);
