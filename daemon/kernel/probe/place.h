/*
 * For probe.c: where a probe goes: the kernel's symbols, or the sites in a file. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/event-name/event-name.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"
#include "daemon/base/strings.h"
#include "daemon/kernel/elf/file.h"
#include "daemon/kernel/symbol/kernel-symbol-index.h"

typedef struct ProbeSite {
        uint64_t offset;    /* kernel: behind the symbol, or without one the address; user: in the file */
        uint64_t semaphore; /* in the file, 0: none */
        char *args;         /* fetch args of a static probe's own arguments, NULL: none */
} ProbeSite;

typedef struct ProbePlaces {
        Strings symbols; /* kernel: to be tried in this order, one if it is known; none: an address */
        bool is_known;   /* kernel: the symbol, or the address, is */
        char *label;     /* for the name in tracefs */
        char *text;      /* for people; of a kernel's place that is not known: of the first symbol */
        ProbeSite *sites;
        size_t n_sites; /* at least one */
        int fd;         /* user: O_PATH, so that it is the same file to the end; -1 for the kernel */
        char *path;     /* user: as the user wrote it */
        bool is_by_fd;  /* user: the path is for people only */
        bool is_unchecked; /* user: whether an instruction begins there is not known */
} ProbePlaces;

#define PROBE_PLACES_NULL ((ProbePlaces){ .fd = -1 })

/*
 * index: of the kernel's functions, or NULL. client: whose right to read the file it has to be; NULL: perfd's. Refusals are those
 * of kernel_symbols_find(), of elf_file_ and of file_access_open().
 */
int probe_places_find(const EventName *name, KernelSymbolIndex *index, const Credentials *client, ProbePlaces *ret, Explanation *e);
void probe_places_deinit(ProbePlaces *p);
/* Of more than `most` sites only so many stay, each with other arguments. */
void probe_places_keep_different(ProbePlaces *p, size_t most);
/*
 * Says what a kernel's place is: "vfs_read+0x10", "0xffffffff812009c0 (kzalloc_noprof+0x0)". symbol NULL: it is an
 * address; inside: the function that it is in, or NULL. -ENOMEM.
 */
int probe_places_take_symbol(ProbePlaces *p, const char *symbol, const char *inside);
/* The file at an absolute path, to see what it has; client and refusals as above. */
int probe_file_open(const char *path, const Credentials *client, ElfFile **ret, Explanation *e);
/* Whether `path` still leads to the file. */
bool probe_places_is_same_file(const ProbePlaces *p);
