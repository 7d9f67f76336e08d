/*
 * For this folder alone: source lines and inlined functions of a file, sorted by their addresses. Rows, scopes and ranges are added in any
 * order, then it is finished once, then an address is found by a binary search without any walk. No file is needed.
 */
#pragma once

#include "client/symbols/table.h"

/* From its address on, up to that of the next one, the code is of this line. */
typedef struct LineRow {
        uint64_t start;
        uint32_t file; /* number of a text; 0: no line has it */
        uint32_t line;
} LineRow;

/* A function, or one that was inlined into another. */
typedef struct InlineScope {
        uint32_t parent;     /* that it was inlined into; 0: it is a function by itself */
        uint32_t name;       /* number of a text; 0: it has none */
        uint32_t call_file;  /* where its parent calls it; 0: not known */
        uint32_t call_line;
} InlineScope;

/* Until the index is finished a range of a scope, then a piece of one up to the next piece; scope 0: none. */
typedef struct InlineRange {
        uint64_t start, end;
        uint32_t scope;
        uint32_t depth; /* of its scope: how many it lies in */
} InlineRange;

typedef struct LineText {
        const char *text;
        bool is_demangled;
} LineText;

typedef struct LineIndex {
        LineRow *rows;
        InlineScope *scopes;
        InlineRange *ranges;
        LineText *texts;     /* number 0 is "" */
        uint32_t *buckets;   /* of texts, by their hash; gone once it is finished */
        size_t n_rows, rows_room, n_scopes, scopes_room, n_ranges, ranges_room, n_texts, texts_room, n_buckets;
        SymbolTable kept;    /* bytes of texts; no symbols */
        size_t bytes, bytes_max;
        bool is_full;        /* it was cut off there */
} LineIndex;

void line_index_init(LineIndex *x, size_t bytes_max, bool has_parameters);
void line_index_deinit(LineIndex *x);

/* What is behind bytes_max is left out: is_full. All: 0; -ENOMEM */
int line_index_add_text(LineIndex *x, const char *text, uint32_t *ret_number);
int line_index_add_row(LineIndex *x, uint64_t start, uint32_t file, uint32_t line);
int line_index_add_scope(LineIndex *x, const InlineScope *scope, uint32_t *ret_number);
int line_index_add_range(LineIndex *x, uint64_t start, uint64_t end, uint32_t scope);
/* Of rows at one address the last that was added is shown; of ranges that cover one the innermost. 0; -ENOMEM */
int line_index_finish(LineIndex *x);

/* NULL: no line has it. */
const LineRow *line_index_find_row(const LineIndex *x, uint64_t address);
/* The innermost scope there. 0: none */
uint32_t line_index_find_scope(const LineIndex *x, uint64_t address);
/* As it was added. */
perfd_text line_index_text(const LineIndex *x, uint32_t number);
/* Demangled, or as it is where there is no memory for that. */
perfd_text line_index_name(LineIndex *x, uint32_t number);
