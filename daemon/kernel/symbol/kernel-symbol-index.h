/*
 * For probes: which functions the kernel has exactly one of, and which it has not, as /proc/kallsyms said when it was last read, so
 * that it need not be read for each probe. 6 to 12 bytes for each of its lines, from the second time that the list was used; and the
 * list itself for as long as an operation lasts, some 10 MB. Any thread, one at a time; with checkpoints, at which others may use it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define KERNEL_SYMBOL_INDEX_MAX (1U << 20) /* lines of the list; of more there is no index */

#define KERNEL_SYMBOL_HINTS 16 /* names of an operation for which one that is like them is looked for: that takes 50 ms each */

typedef struct KernelSymbolList {
        unsigned n_refs;
        uint64_t modules;
        char *text;
        size_t length;
} KernelSymbolList;

typedef struct KernelSymbolIndex {
        uint32_t *marks; /* a hash table; 0: nothing there; NULL: there is no index */
        size_t n_marks;  /* a power of two */
        uint64_t modules; /* what was loaded when the list was read */
        bool was_read;
        KernelSymbolList *list; /* of this operation, or NULL */
        size_t hints;           /* of this operation, which are left */
} KernelSymbolIndex;

#define KERNEL_SYMBOL_INDEX_NULL ((KernelSymbolIndex){ .hints = KERNEL_SYMBOL_HINTS })

/* What identifies the modules that are loaded now: to be taken before the list is read. root: "" but in tests. */
uint64_t kernel_symbol_index_modules(const char *root);
/*
 * The list as it was read, with what was loaded before that. Without memory there is no index, and nothing is lost. Refused: by a
 * checkpoint.
 */
int kernel_symbol_index_add(KernelSymbolIndex *x, uint64_t modules, const char *text, size_t length, Explanation *e);
/* Whether the list has this function once. False if it is not known, or has changed: then it has to be read. */
bool kernel_symbol_index_has(const KernelSymbolIndex *x, uint64_t modules, const char *name);
/* Whether the list has neither this function, nor what the compiler made of it. False if it is not known. */
bool kernel_symbol_index_lacks(const KernelSymbolIndex *x, uint64_t modules, const char *name);
/* The list, read once for as long as the same is loaded, until it is forgotten. As kernel_symbols_read(). */
int kernel_symbol_index_list(KernelSymbolIndex *x, uint64_t modules, const char *path, KernelSymbolList **ret, Explanation *e);
void kernel_symbol_list_unref(KernelSymbolList *list);
/* An operation is over. */
void kernel_symbol_index_forget(KernelSymbolIndex *x);
void kernel_symbol_index_deinit(KernelSymbolIndex *x);
