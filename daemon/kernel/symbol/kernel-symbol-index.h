/*
 * For probes: which functions the kernel has exactly one of, as /proc/kallsyms said when it was last read, so that it need
 * not be read for each probe. 6 to 12 bytes for each of its lines, from the second time that the list was read. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_SYMBOL_INDEX_MAX (1U << 20) /* lines of the list; of more there is no index */

typedef struct KernelSymbolIndex {
        uint32_t *marks; /* a hash table; 0: nothing there; NULL: there is no index */
        size_t n_marks;  /* a power of two */
        uint64_t modules; /* what was loaded when the list was read */
        bool was_read;
} KernelSymbolIndex;

#define KERNEL_SYMBOL_INDEX_NULL ((KernelSymbolIndex){ .marks = NULL })

/* What identifies the modules that are loaded now: to be taken before the list is read. root: "" but in tests. */
uint64_t kernel_symbol_index_modules(const char *root);
/* The list as it was read, with what was loaded before that. Without memory there is no index, and nothing is lost. */
void kernel_symbol_index_add(KernelSymbolIndex *x, uint64_t modules, const char *text, size_t length);
/* Whether the list has this function once. False if it is not known, or has changed: then it has to be read. */
bool kernel_symbol_index_has(const KernelSymbolIndex *x, uint64_t modules, const char *name);
void kernel_symbol_index_deinit(KernelSymbolIndex *x);
