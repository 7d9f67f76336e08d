/*
 * For this folder alone: symbols sorted by their addresses. Names are added, then it is finished once, then addresses are found in it by
 * an index and a binary search. Names stay where they are until it is freed; those of C++ and Rust are demangled when they are asked for first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfd/field.h"

#define SYMBOL_LENGTH_MAX ((UINT32_C(1) << 31) - 1)
#define SYMBOL_NAME_MAX 65535 /* bytes; what is longer is cut */

/* Which of several at one address is shown, as perf chooses; with the same bits that of the longer name with fewer underscores before it, and
   then of the higher number below them. */
#define SYMBOL_STRONG (UINT32_C(1) << 31) /* not weak */
#define SYMBOL_GLOBAL (UINT32_C(1) << 30)
#define SYMBOL_ORDER_MAX (SYMBOL_GLOBAL - 1)

/* Once it is finished: a piece of a function, disjoint from all others. */
typedef struct Symbol {
        uint64_t start;
        uint32_t length : 31;
        bool is_demangled : 1;
        uint32_t into;    /* of the function, where the piece begins; until it is finished its rank */
        const char *name;
} Symbol;

typedef struct NameChunk NameChunk;

typedef struct SymbolTable {
        Symbol *symbols;
        size_t n, room;
        uint32_t *index; /* of equal parts of the addresses, from the first symbol on: the last one that does not begin behind the part's begin */
        size_t n_parts;  /* of 1 << part_shift bytes; `index` has the last symbol behind them */
        unsigned part_shift;
        NameChunk *names;
        size_t bytes, bytes_max; /* in use, and what it may use */
        bool is_full;            /* it was cut off there */
        bool has_parameters;     /* names of C++ are shown with the types of theirs */
} SymbolTable;

void symbol_table_init(SymbolTable *t, size_t bytes_max, bool has_parameters);
void symbol_table_deinit(SymbolTable *t);
/* length 0: up to the next one. What is behind bytes_max is left out: is_full. 0; -ENOMEM */
int symbol_table_add(SymbolTable *t, uint64_t start, uint64_t length, const char *name, size_t n, unsigned rank);
/*
 * Where some overlap, the one that begins last is shown, and of those that begin there the best; or with is_by_rank the one of the highest
 * rank, whatever number that is. 0; -ENOMEM
 */
int symbol_table_finish(SymbolTable *t, bool is_by_rank);
/* NULL: none is there. */
Symbol *symbol_table_find(const SymbolTable *t, uint64_t address);
/* Demangled, or as it is where there is no memory for that. */
perfd_text symbol_table_name(SymbolTable *t, Symbol *symbol);
/* A copy that lives as long as the table. NULL: no memory */
const char *symbol_table_keep(SymbolTable *t, const char *text, size_t n);
