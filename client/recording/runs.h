/*
 * For this folder alone: sorted runs of records in a temporary file, which are merged when they are read; and what keeps its place, in
 * another one.
 */
#pragma once

#include "client/recording/stored.h"

#define RUN_BUFFER ((size_t)96 << 10) /* bytes: at least the largest record */
_Static_assert(RUN_BUFFER >= STORED_MAX, "RUN_BUFFER must hold a record: make it larger");

/* Null image: TEMPORARY_NULL. */
typedef struct Temporary {
        int fd;
        uint64_t n;          /* bytes of it that are written */
        uint8_t *buffer;     /* RUN_BUFFER bytes, of which `used` are to be written */
        size_t used;
} Temporary;
#define TEMPORARY_NULL ((Temporary){ .fd = -1 })

/* Each 0; -ENOMEM, -errno with a text. */
int temporary_add(perfd_recording *r, Temporary *t, const Stored *head, const void *bytes);
int temporary_flush(perfd_recording *r, Temporary *t);
/* Idempotent. */
void temporary_close(Temporary *t);

/* Of bytes [begin, end) of the file those from `at` on are to be given. */
typedef struct Run {
        uint64_t begin, at, end;
        uint8_t *buffer;     /* bytes [loaded, loaded + n) of the file; NULL: none */
        uint64_t loaded;
        size_t n;
        uint64_t time, sequence; /* of the first record */
} Run;

/* The first record, which is there. It stays until the next call. 0; -ENOMEM, -errno with a text */
int run_first(perfd_recording *r, const Temporary *t, Run *run, const Stored **ret);
/* Behind the first one, which was read. 0; -ENOMEM, -errno with a text */
int run_step(perfd_recording *r, const Temporary *t, Run *run);
void run_drop_buffer(Run *run);

/* A heap: the first run has the first record. Null image: RUNS_NULL. */
typedef struct Runs {
        Temporary file;
        Run *list;
        size_t n, room;
} Runs;
#define RUNS_NULL ((Runs){ .file = TEMPORARY_NULL })

/* Idempotent. */
void runs_deinit(Runs *runs);
/* Behind what temporary_add() got since `from`, a place in the file: a run. 0; -ENOMEM, -errno with a text */
int runs_add(perfd_recording *r, Runs *runs, uint64_t from);
/* Behind the first record of the first run, which was read. 0; -ENOMEM, -errno with a text */
int runs_step(perfd_recording *r, Runs *runs);
/* Makes one of the smaller half of them. 0; -ENOMEM, -errno with a text */
int runs_merge(perfd_recording *r, Runs *runs);
void runs_drop_buffers(Runs *runs);
