#include "client/relay/publish/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "client/relay/publish/spool-place.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"

#define SEGMENT_MIN ((uint64_t)1 << 20)
#define SEGMENT_MAX ((uint64_t)16 << 20)
#define NAMES_TRIED 1000 /* of one that is made, if others are taken */

void spool_segment_name(uint64_t number, char to[SPOOL_NAME_SIZE]) {
        (void)snprintf(to, SPOOL_NAME_SIZE, "%016llx.spool", (unsigned long long)number);
}

/* ---- its life ----------------------------------------------------------------------------------------------------- */

static int open_directory(Spool *s, Explanation *e) {
        struct stat st;
        int r = spool_place_check(s->path, e);

        if (r != 0)
                return r;
        s->directory = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->directory < 0 || fstat(s->directory, &st) < 0)
                return refuse(e, REFUSED_DENIED, "spool", "%s cannot be opened: %s", s->path, strerror(errno));
        s->owner = st.st_uid;
        if (flock(s->directory, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                               ? refuse(e, REFUSED_EXISTS, "spool", "%s is the spool of another perfd-relay that runs: give each a directory "
                                        "of its own, or stop that one", s->path)
                               : refuse(e, REFUSED_DENIED, "spool", "%s cannot be locked: %s", s->path, strerror(errno));
        return 0;
}

static Spool *spool_new(const char *path, uint64_t limit, const char *machine) {
        Spool *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->directory = s->tail = s->reading = s->marks = -1;
        s->limit = limit;
        s->segment_size = limit / 8 < SEGMENT_MIN ? SEGMENT_MIN : limit / 8 > SEGMENT_MAX ? SEGMENT_MAX : limit / 8;
        s->unsynced = UINT64_MAX;
        (void)snprintf(s->machine, sizeof(s->machine), "%s", machine);
        s->path = strdup(path);
        s->window = malloc(SPOOL_RECORD_MAX);
        s->record = malloc(SPOOL_RECORD_MAX);
        if (s->path && s->window && s->record)
                return s;
        spool_close(s);
        return NULL;
}

int spool_open(const char *path, uint64_t limit, const char *machine, Spool **ret, Explanation *e) {
        Spool *s = spool_new(path, limit, machine);
        int r;

        if (!s)
                return error_origin(-ENOMEM);
        r = open_directory(s, e);
        if (r == 0)
                r = spool_marks_open(s, e);
        if (r == 0)
                r = spool_files_load(s, e);
        if (r == 0 && s->n_marks == 0 && s->n_segments == 0) /* so that one without a mark is one that has lost it */
                spool_mark(s);
        if (r == 0)
                *ret = s;
        else
                spool_close(s);
        return r;
}

void spool_close(Spool *s) {
        if (!s)
                return;
        close_fd(s->tail);
        close_fd(s->reading);
        close_fd(s->marks);
        close_fd(s->directory);
        free(s->segments);
        free(s->window);
        free(s->record);
        free(s->path);
        free(s);
}

/* ---- appending ---------------------------------------------------------------------------------------------------- */

static int fail(Spool *s, int error) {
        s->error = error;
        return SPOOL_E_FAILED;
}

/* All, or nothing: what was written of it is no part of the file. */
static int write_at(Spool *s, int fd, const uint8_t *bytes, size_t length, uint64_t offset) {
        for (size_t n = 0; n < length;) {
                ssize_t k = pwrite(fd, bytes + n, length - n, (off_t)(offset + n));

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0) {
                        int error = k < 0 ? errno : EIO;

                        (void)!ftruncate(fd, (off_t)offset); /* or it is written over, or found to be torn */
                        return fail(s, error);
                }
                n += (size_t)k;
        }
        return 0;
}

/* A name that something has already is nobody's: what is behind it is not the relay's, and the next one is as good. An errno. */
static int make_file(Spool *s, int *ret_fd) {
        for (int i = 0; i < NAMES_TRIED; i++) {
                char name[SPOOL_NAME_SIZE];

                spool_segment_name(s->next_segment, name);
                *ret_fd = openat(s->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (*ret_fd >= 0 || errno != EEXIST)
                        return *ret_fd < 0 ? errno : 0;
                s->next_segment++;
        }
        return EEXIST; /* the next call goes on from there */
}

static int begin_segment(Spool *s) {
        SpoolHeader h = { .first = s->last + 1 };
        uint8_t bytes[SPOOL_HEADER_SIZE];
        char name[SPOOL_NAME_SIZE];
        int fd, r;

        if (!ARRAY_ROOM(s->segments, s->n_segments))
                return error_origin(-ENOMEM);
        r = make_file(s, &fd);
        if (r != 0)
                return fail(s, r);
        h.number = s->next_segment;
        if (getrandom(&h.salt, sizeof(h.salt), GRND_NONBLOCK) < 0)
                h.salt = (uint32_t)clock_now(CLOCK_MONOTONIC); /* early in the boot: no message has been written by then */
        memcpy(h.machine, s->machine, sizeof(h.machine));
        spool_header_put(bytes, &h);
        spool_segment_name(h.number, name);
        r = write_at(s, fd, bytes, sizeof(bytes), 0);
        if (r != 0) {
                (void)unlinkat(s->directory, name, 0);
                close_fd(fd);
                return r;
        }
        close_fd(s->tail);
        s->tail = fd;
        s->segments[s->n_segments++] = (SpoolSegment){ .number = h.number, .first = h.first, .last = s->last, .size = sizeof(bytes),
                                                       .salt = h.salt };
        s->next_segment++;
        s->size += sizeof(bytes);
        return 0;
}

int spool_append(Spool *s, Message *m) {
        size_t length = spool_record_size(m);
        SpoolSegment *tail = s->tail >= 0 ? &s->segments[s->n_segments - 1] : NULL;
        bool is_next = !tail || (tail->size > SPOOL_HEADER_SIZE && tail->size + length > s->segment_size);
        int r;

        assert(length <= SPOOL_RECORD_MAX);
        if (s->size + length + (is_next ? SPOOL_HEADER_SIZE : 0) > s->limit)
                return SPOOL_E_FULL;
        r = is_next ? begin_segment(s) : 0;
        if (r != 0)
                return r;
        tail = &s->segments[s->n_segments - 1];
        spool_record_put(s->record, m, s->last + 1, tail->salt);
        r = write_at(s, s->tail, s->record, length, tail->size);
        if (r != 0) {
                if (tail->size > SPOOL_HEADER_SIZE) /* it is finished, for its room to be free when all of it is stored */
                        s->tail = close_fd(s->tail);
                return r;
        }
        m->spooled = tail->last = ++s->last;
        tail->size += length;
        s->size += length;
        if (s->unsynced > tail->number)
                s->unsynced = tail->number;
        return 0;
}

void spool_pass_over(Spool *s) {
        spool_settle(s);
        assert(s->cursor == s->n_segments - 1);
        s->offset = s->segments[s->cursor].size;
        s->window_begin = s->window_end = 0;
        s->given = s->last;
}

void spool_set_stored(Spool *s, uint64_t number) {
        if (number <= s->stored)
                return;
        s->stored = number;
        spool_mark(s);
        spool_files_remove(s);
}
