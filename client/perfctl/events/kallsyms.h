/* For `watch` and `count`: names of the kernel's addresses, as far as who runs perfctl may read them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfd.h"

typedef struct KernelSymbol {
        uint64_t address;
        const char *name, *module;
} KernelSymbol;

typedef struct Kallsyms {
        bool is_here, is_read; /* the stream is of this machine; the file was read, if it could be */
        char *text;            /* of the file; names point into it */
        KernelSymbol *list;    /* by address */
        size_t n;
} Kallsyms;

#define KALLSYMS_NULL ((Kallsyms){ .text = NULL })

void kallsyms_init(Kallsyms *k, const perfd_start *start);
void kallsyms_deinit(Kallsyms *k);
/* perfd_symbols.find; userdata is a Kallsyms. The file is read when the first address is asked for. */
bool kallsyms_find(void *userdata, uint64_t address, perfd_symbol *ret);
/* For tests: takes the text of a file, of malloc. */
void kallsyms_read(Kallsyms *k, char *text);
