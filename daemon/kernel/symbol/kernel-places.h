/*
 * For clients that may not read /proc/kallsyms: what is at an address of the kernel. The list as it was read, and 16 bytes for each of its
 * places; some 15 MB. Main, or any one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

typedef struct KernelPlace {
        const char *symbol, *module; /* in the list; module: "" of the kernel itself */
        size_t symbol_length, module_length;
        uint64_t offset; /* bytes from its beginning */
        uint64_t size;   /* bytes up to what follows; 0: not known */
} KernelPlace;

typedef struct KernelPlaces {
        char *text;
        struct KernelPlaceEntry *list; /* by address; of several at one address the last in the list, functions before others */
        size_t n;
} KernelPlaces;

#define KERNEL_PLACES_NULL ((KernelPlaces){ .text = NULL })

/*
 * With checkpoints. KERNEL_SYMBOLS_E_HIDDEN: the list cannot be read, or shows no addresses. -ENOMEM; refused by a checkpoint. Then nothing is
 * in *ret.
 */
int kernel_places_read(const char *path, KernelPlaces *ret, Explanation *e);
void kernel_places_deinit(KernelPlaces *p);
/* The function that has the address. False: none, or it is data. */
bool kernel_places_find(const KernelPlaces *p, uint64_t address, KernelPlace *ret);
