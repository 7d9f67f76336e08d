/*
 * For this folder alone: what was mapped where, and when. Nothing is removed: what comes later hides what was there before, from its time
 * on. Sorted by address, with the highest end so far beside each, so that finding what covers an address walks over few others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Dso;

typedef struct Mapping {
        uint64_t start, end;
        uint64_t end_so_far; /* of it and all before it */
        uint64_t time;       /* ns, from which on it is there */
        uint64_t order;      /* among those of the same time: the higher one came later */
        uint64_t offset;     /* bytes from the beginning of the file */
        struct Dso *dso;     /* NULL: nothing is there any more */
        char *name;          /* allocated: a symbol that all of it is; NULL: the file has them */
} Mapping;

typedef struct AddressMap {
        Mapping *list;
        size_t n, room;
} AddressMap;

/* From when on, and until when, what was found is there: no change in between. */
typedef struct Validity {
        uint64_t from, until; /* ns, without `until` */
} Validity;

#define VALIDITY_ALWAYS { .until = UINT64_MAX }

/* 0; -ENOMEM */
int address_map_add(AddressMap *m, const Mapping *mapping);
/* What is at an address at a time and was mapped at `since` or later. NULL: nothing is. Narrows the validity. */
const Mapping *address_map_find(const AddressMap *m, uint64_t address, uint64_t time, uint64_t since, Validity *validity);
/* Frees names; dsos are the caller's. */
void address_map_deinit(AddressMap *m);
