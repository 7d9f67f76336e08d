/*
 * Messages in files of a directory (spool-record.h), in the order in which they were added, until they are stored elsewhere: a queue
 * that outlives the process. Files are appended to, and removed as wholes when the last of their messages is stored; how far that is,
 * is written down each time. What was there before is read like what came since; nothing is appended to a file of an earlier run.
 *
 * Each message is in the page cache when spool_append() returns, where it survives the process. Writing to disk is spool-sync.h's.
 * One directory belongs to one process, by flock(2). What has the name of a file and is none of the relay's is passed over, and stays.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/relay/publish/spool-record.h"
#include "daemon/base/error.h"

#define SPOOL_NAME_SIZE 32 /* of a file */

typedef struct SpoolSegment {
        uint64_t number;
        uint64_t first, last; /* messages; last is known when the file is finished */
        uint64_t size;
        uint32_t salt;
        bool is_headless;     /* its header is damaged: nothing of it can be read */
        bool was_damaged;     /* it is put aside and not removed */
} SpoolSegment;

/* What cannot be read. */
typedef struct SpoolDamage {
        char file[SPOOL_NAME_SIZE];
        uint64_t offset, length;
        int error; /* of read(2); 0: the checksums are wrong */
} SpoolDamage;

/* What has the name of a file of the spool, and is none: no regular file, or of somebody else. */
typedef struct SpoolForeign {
        char file[SPOOL_NAME_SIZE]; /* the first one */
        const char *what;           /* "is a FIFO; remove it", static */
        size_t n;
} SpoolForeign;

typedef struct Spool {
        char *path;
        uid_t owner; /* of the directory */
        char machine[33];
        int directory, tail, reading, marks; /* fds; marks: -1 if another's file is in their place */
        uint64_t limit, segment_size, size; /* bytes: of all files, of one, and what there is */
        SpoolSegment *segments;
        size_t n_segments;
        uint64_t last;   /* number of the newest message */
        uint64_t given;  /* of the last one that was read, or passed over */
        uint64_t stored; /* all up to it are */
        uint64_t n_marks;
        size_t cursor;   /* the segment that is read; n_segments: none is left */
        uint64_t offset; /* in it */
        uint8_t *window; /* bytes of it, from `offset` on */
        size_t window_begin, window_end;
        SpoolDamage damage; /* so far; length 0: none */
        uint8_t *record;
        uint64_t next_segment;
        uint64_t unsynced;  /* the first segment with what is not on disk, UINT64_MAX: none has */
        SpoolDamage torn;   /* what was cut off at the end when it was opened; length 0: nothing */
        SpoolForeign foreign, foreign_marks; /* when it was opened; n 0: none. foreign_marks: how far messages are stored is not written */
        bool has_lost_marks; /* how far messages are stored cannot be read: all count as not stored */
        int error;          /* why the last spool_append() has failed */
} Spool;

/*
 * Makes nothing but files: the directory has to be there. `limit` in bytes, from SPOOL_LIMIT_MIN on. `machine`: 32 digits; messages of
 * another one are refused. Positive: a Refusal, explained; then nothing has changed.
 */
#define SPOOL_LIMIT_MIN ((uint64_t)4 << 20)
int spool_open(const char *path, uint64_t limit, const char *machine, Spool **ret, Explanation *e);
/* Takes NULL. What is not stored stays. */
void spool_close(Spool *s);

enum {
        SPOOL_E_FULL = 1, /* the limit: until messages are stored */
        SPOOL_E_FAILED,   /* s->error says why; nothing was added */
};
/* Sets m->spooled. */
int spool_append(Spool *s, Message *m);
/* The message that was appended last does not have to be read: whoever has appended it still has it. There is no other one. */
void spool_pass_over(Spool *s);

enum {
        SPOOL_E_NONE = 1,
        SPOOL_E_DAMAGED, /* *ret_damage was passed over; call again */
};
/* The next message that was not read, and is not stored. Negative: -ENOMEM, which changes nothing. */
int spool_next(Spool *s, Message **ret, SpoolDamage *ret_damage);
bool spool_has_unread(Spool *s);

/* All messages up to this number are stored; those above it might not be. */
void spool_set_stored(Spool *s, uint64_t number);
/* How many there are that are not stored, by their numbers. */
static inline uint64_t spool_count(const Spool *s) {
        return s->last - s->stored;
}

/* For its parts: spool-files.c, spool-read.c, spool-sync.c. */
/* Why what has the name of a file is none of the spool's, with what to do; NULL: it can be one. `owner`: of the directory. */
const char *spool_find_foreign(uid_t owner, const struct stat *st);
void spool_segment_name(uint64_t number, char to[SPOOL_NAME_SIZE]);
int spool_files_load(Spool *s, Explanation *e);
void spool_files_remove(Spool *s); /* what is read and stored */
void spool_settle(Spool *s);       /* cursor: from the end of a finished file on to the next */
int spool_marks_open(Spool *s, Explanation *e);
void spool_mark(Spool *s);
