/* What an earlier run has left is found by its names, and each file says by its header what it is. */
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/relay/publish/checksum.h"
#include "client/relay/publish/spool.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"

#define MARKS_NAME "stored"
#define MARK_SIZE 24
#define MARK_DISTANCE 512 /* the other one is in another sector */
#define MARK_SALT UINT32_C(0x6b72616d)

/* ---- what a name belongs to ---------------------------------------------------------------------------------------- */

/* The owner of the directory, if root uses it, is its relay's user. */
const char *spool_find_foreign(uid_t owner, const struct stat *st) {
        if (S_ISLNK(st->st_mode))
                return "is a symbolic link; remove it";
        if (S_ISDIR(st->st_mode))
                return "is a directory; remove it";
        if (S_ISFIFO(st->st_mode))
                return "is a FIFO; remove it";
        if (!S_ISREG(st->st_mode))
                return "is a socket or a device; remove it";
        return st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != owner
                       ? "belongs to another user; remove it, or, if it is of an earlier run, give it to the user of the relay (chown)" : NULL;
}

static void add_foreign(SpoolForeign *f, const char *name, const char *what) {
        if (f->n++ == 0) {
                (void)snprintf(f->file, sizeof(f->file), "%s", name);
                f->what = what;
        }
}

static int refuse_file(const Spool *s, const char *name, int error, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "spool", "%s/%s cannot be opened: %s%s", s->path, name, strerror(error),
                      error == EACCES ? "; give it to the user of the relay (chown, chmod 0600), or move it away" : "");
}

/* Waits for nothing, whatever has the name. 0: an fd and fstat(2) of it, or -1: what is there has been added to `foreign`; or a Refusal. */
static int open_file(const Spool *s, const char *name, int flags, SpoolForeign *foreign, int *ret_fd, struct stat *ret, Explanation *e) {
        _cleanup_close_ int fd = openat(s->directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        int error = errno;
        const char *what;

        *ret_fd = -1;
        if ((fd >= 0 ? fstat(fd, ret) : fstatat(s->directory, name, ret, AT_SYMLINK_NOFOLLOW)) < 0)
                return refuse_file(s, name, fd >= 0 ? errno : error, e);
        what = spool_find_foreign(s->owner, ret);
        if (what)
                add_foreign(foreign, name, what);
        else if (fd < 0)
                return refuse_file(s, name, error, e);
        else
                *ret_fd = TAKE_FD(fd);
        return 0;
}

/* ---- how far messages are stored ---------------------------------------------------------------------------------- */

/* Of two marks the one that was written last counts, and the other one if that is torn. */
static bool mark_get(const uint8_t *bytes, uint64_t ret[2]) {
        uint32_t sum;

        memcpy(ret, bytes, 2 * sizeof(*ret));
        memcpy(&sum, bytes + 16, sizeof(sum));
        ret[0] = le64toh(ret[0]);
        ret[1] = le64toh(ret[1]);
        return ret[0] > 0 && le32toh(sum) == checksum(MARK_SALT, bytes, 16);
}

int spool_marks_open(Spool *s, Explanation *e) {
        uint8_t bytes[MARK_SIZE];
        struct stat st;
        int r = open_file(s, MARKS_NAME, O_RDWR | O_CREAT, &s->foreign_marks, &s->marks, &st, e);

        if (r != 0)
                return r;
        for (int i = 0; i < 2 && s->marks >= 0; i++) {
                uint64_t mark[2];

                if (pread(s->marks, bytes, sizeof(bytes), i * MARK_DISTANCE) != sizeof(bytes) || !mark_get(bytes, mark) || mark[0] < s->n_marks)
                        continue;
                s->n_marks = mark[0];
                s->stored = mark[1];
        }
        s->has_lost_marks = s->n_marks == 0;
        return 0;
}

/* One that cannot be written costs that messages are sent again after a restart, which their ids are for. */
void spool_mark(Spool *s) {
        uint64_t mark[2] = { htole64(++s->n_marks), htole64(s->stored) };
        uint8_t bytes[MARK_SIZE] = { 0 };
        uint32_t sum;

        if (s->marks < 0)
                return;
        memcpy(bytes, mark, sizeof(mark));
        sum = htole32(checksum(MARK_SALT, bytes, sizeof(mark)));
        memcpy(bytes + sizeof(mark), &sum, sizeof(sum));
        (void)!pwrite(s->marks, bytes, sizeof(bytes), (off_t)(s->n_marks & 1) * MARK_DISTANCE);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

void spool_files_remove(Spool *s) {
        size_t n = 0;

        spool_settle(s);
        while (n < s->cursor && s->segments[n].last <= s->stored) {
                char name[SPOOL_NAME_SIZE], aside[SPOOL_NAME_SIZE + sizeof(".damaged")];

                spool_segment_name(s->segments[n].number, name);
                (void)snprintf(aside, sizeof(aside), "%s.damaged", name);
                if (!s->segments[n].was_damaged || renameat(s->directory, name, s->directory, aside) < 0)
                        (void)unlinkat(s->directory, name, 0); /* one that stays is found by the next run, and is stored */
                s->size -= s->segments[n].size;
                n++;
        }
        if (n == 0)
                return;
        memmove(s->segments, s->segments + n, (s->n_segments - n) * sizeof(*s->segments));
        s->n_segments -= n;
        s->cursor -= n;
}

static int compare(const void *a, const void *b) {
        uint64_t x = ((const SpoolSegment *)a)->number, y = ((const SpoolSegment *)b)->number;

        return x < y ? -1 : x > y;
}

static bool name_number(const char *name, uint64_t *ret) {
        char expected[SPOOL_NAME_SIZE];

        *ret = strtoull(name, NULL, 16);
        spool_segment_name(*ret, expected);
        return strcmp(name, expected) == 0;
}

static int list(Spool *s, Explanation *e) {
        int fd = openat(s->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;
        uint64_t number;

        if (!d) {
                r = refuse(e, REFUSED_DENIED, "spool", "%s cannot be read: %s", s->path, strerror(errno));
                close_fd(fd);
                return r;
        }
        while (r == 0 && (entry = readdir(d))) {
                if (!name_number(entry->d_name, &number))
                        continue;
                if (!ARRAY_ROOM(s->segments, s->n_segments))
                        r = error_origin(-ENOMEM);
                else
                        s->segments[s->n_segments++] = (SpoolSegment){ .number = number };
        }
        closedir(d);
        if (s->n_segments > 0)
                qsort(s->segments, s->n_segments, sizeof(*s->segments), compare);
        return r;
}

static int load_header(Spool *s, SpoolSegment *segment, int fd, Explanation *e) {
        uint8_t bytes[SPOOL_HEADER_SIZE];
        char name[SPOOL_NAME_SIZE];
        ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
        SpoolHeader h;
        int r = spool_header_get(bytes, n > 0 ? (size_t)n : 0, &h);

        spool_segment_name(segment->number, name);
        if (r == SPOOL_HEADER_E_VERSION)
                return refuse(e, REFUSED_UNSUPPORTED, "spool", "%s/%s was written by a perfd-relay of another version: let that one publish "
                              "it, or move the files of the directory away", s->path, name);
        if (r == 0 && strcmp(h.machine, s->machine) != 0)
                return refuse(e, REFUSED_EXISTS, "spool", "%s/%s is of another host, whose machine-id is %s: give each host a directory of its "
                              "own, or move the files of this one away", s->path, name, h.machine);
        segment->is_headless = r != 0 || h.number != segment->number;
        if (!segment->is_headless) {
                segment->first = h.first;
                segment->salt = h.salt;
        }
        return 0;
}

/* *ret_is_ours: else it has been noted. */
static int load(Spool *s, SpoolSegment *segment, bool *ret_is_ours, Explanation *e) {
        _cleanup_close_ int fd = -1;
        char name[SPOOL_NAME_SIZE];
        struct stat st;
        int r;

        spool_segment_name(segment->number, name);
        r = open_file(s, name, O_RDONLY, &s->foreign, &fd, &st, e);
        *ret_is_ours = fd >= 0;
        if (fd < 0)
                return r;
        segment->size = (uint64_t)st.st_size;
        s->size += segment->size;
        return load_header(s, segment, fd, e);
}

static int load_all(Spool *s, Explanation *e) {
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < s->n_segments; i++) {
                bool is_ours;

                r = load(s, &s->segments[i], &is_ours, e);
                if (is_ours)
                        s->segments[n++] = s->segments[i];
        }
        s->n_segments = n;
        return r;
}

/* Bytes behind the last message of the last file are what its process, or the host, had no time to write. */
static void cut(Spool *s, SpoolSegment *segment, uint64_t end) {
        char name[SPOOL_NAME_SIZE];
        _cleanup_close_ int fd = -1;

        spool_segment_name(segment->number, name);
        memcpy(s->torn.file, name, sizeof(name));
        s->torn.offset = end;
        s->torn.length = segment->size - end;
        fd = openat(s->directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)end) < 0)
                s->torn.error = errno; /* they are passed over all the same */
        s->size -= s->torn.length;
        segment->size = end;
}

/* The last file whose header is whole is read to its end: for the number of the newest message, and for what is torn. */
static int scan(Spool *s, SpoolSegment *segment) {
        uint64_t end = SPOOL_HEADER_SIZE, stored = s->stored;
        size_t n_segments = s->n_segments;
        int r = 0;

        s->cursor = (size_t)(segment - s->segments);
        s->n_segments = s->cursor + 1;
        s->offset = SPOOL_HEADER_SIZE;
        s->given = segment->first > 0 ? segment->first - 1 : 0;
        s->stored = 0;
        while (r >= 0 && r != SPOOL_E_NONE) {
                Message *m = NULL;
                SpoolDamage damage;

                r = spool_next(s, &m, &damage);
                end = r == 0 ? s->offset : end;
                message_free(m);
        }
        s->reading = close_fd(s->reading);
        s->window_begin = s->window_end = 0;
        s->n_segments = n_segments;
        s->stored = stored;
        s->last = segment->last = s->given;
        segment->was_damaged = false; /* it is found again when it is read */
        if (r >= 0 && end < segment->size && segment == &s->segments[n_segments - 1])
                cut(s, segment, end);
        return r < 0 ? r : 0;
}

static int load_numbers(Spool *s) {
        SpoolSegment *last = &s->segments[s->n_segments - 1];
        size_t n = s->n_segments;
        int r = 0;

        s->next_segment = last->number + 1;
        if (last->is_headless && last->size > 0 && last->size < SPOOL_HEADER_SIZE)
                cut(s, last, 0);
        while (n > 0 && s->segments[n - 1].is_headless)
                n--;
        if (n > 0)
                r = scan(s, &s->segments[n - 1]);
        for (size_t i = n; i < s->n_segments; i++)
                s->segments[i].last = s->last;
        for (size_t i = n; i > 1; i--)
                s->segments[i - 2].last = !s->segments[i - 1].is_headless ? s->segments[i - 1].first - 1 : s->segments[i - 1].last;
        return r;
}

int spool_files_load(Spool *s, Explanation *e) {
        int r = list(s, e);

        if (r == 0)
                r = load_all(s, e);
        if (r == 0 && s->n_segments > 0)
                r = load_numbers(s);
        if (r != 0)
                return r;
        s->last = s->last > s->stored ? s->last : s->stored;
        s->cursor = 0;
        s->offset = SPOOL_HEADER_SIZE;
        s->given = 0;
        while (s->cursor < s->n_segments && !s->segments[s->cursor].is_headless && s->segments[s->cursor].last <= s->stored)
                s->cursor++;
        spool_files_remove(s);
        s->unsynced = s->n_segments > 0 ? s->segments[0].number : UINT64_MAX; /* the run that wrote them may have been killed */
        return 0;
}
