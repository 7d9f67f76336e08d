/*
 * For this folder alone: what the kernel has between its first and its last function, kept in a file. The kernel makes /proc/kallsyms anew for each
 * reader, which takes longer than all else for most recordings; and until the next boot this part of it stays the same: modules and BPF
 * programs, which come and go, lie elsewhere.
 */
#pragma once

#include "client/symbols/table.h"

/* The addresses of the kernel itself in its list. */
typedef struct KernelRange {
        uint64_t first, last; /* of a function; last 0: there is none */
        bool is_shared;       /* something else lies in between: it is not kept */
        bool has_ended;       /* lines of modules have begun */
} KernelRange;

/* is_kernel: the line is not of a module, or of what was made while it ran */
void kernel_range_add(KernelRange *range, uint64_t address, bool is_kernel);

typedef struct CachedHead CachedHead;

typedef struct KernelCache {
        const CachedHead *head; /* of the file as it is mapped; NULL: none */
        size_t size;
} KernelCache;

/*
 * A file is trusted only if it and its folder are this user's and nobody else may write them, if it is of this boot (each has the kernel elsewhere),
 * and whole. Whether there was one.
 */
bool kernel_cache_open(KernelCache *c, const char *folder);
void kernel_cache_close(KernelCache *c);
uint64_t kernel_cache_text(const KernelCache *c);
/* Whether that part of the list tells all of an address. */
bool kernel_cache_covers(const KernelCache *c, uint64_t address);
/* Its name lives as long as the cache is open. */
bool kernel_cache_find(const KernelCache *c, uint64_t address, Symbol *ret);
/* What cannot be kept is read from the kernel the next time, too. text: where _text is */
void kernel_cache_write(const char *folder, SymbolTable *table, const KernelRange *range, uint64_t text);
