/*
 * One window over a file or pipe, read ahead in large pieces. It grows only while bytes come, so that a length which lies costs no
 * memory.
 */
#include "client/recording/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)   /* bytes: of most machines */
#define READ_AHEAD ((size_t)256 << 10) /* bytes */

void source_of_memory(Source *s, const void *bytes, size_t n) {
        *s = SOURCE_NULL;
        s->memory = bytes;
        s->size = n;
}

int source_of_fd(Source *s, int fd, bool owns) {
        struct stat st;

        *s = SOURCE_NULL;
        s->fd = fd;
        s->owns_fd = owns;
        s->size = SOURCE_UNKNOWN;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (S_ISREG(st.st_mode))
                s->size = (uint64_t)st.st_size;
        return 0;
}

int source_hold_room(Source *s, uint64_t offset, size_t room) {
        s->held_memory = aligned_alloc(HUGE_PAGE, (room + HUGE_PAGE) & ~(HUGE_PAGE - 1));
        if (!s->held_memory)
                return -ENOMEM;
        if (room >= HUGE_PAGE)
                (void)madvise(s->held_memory, room & ~(HUGE_PAGE - 1), MADV_HUGEPAGE); /* pages of 4 KiB cost more than reading into them */
        s->held = s->held_memory;
        s->held_at = offset;
        s->held_room = room;
        s->n_held = 0;
        return 0;
}

int source_hold(Source *s, uint64_t offset, size_t n) {
        size_t got = 0;

        if (offset > s->size || n > s->size - offset)
                return 1;
        if (s->fd >= 0 && source_hold_room(s, offset, n) != 0)
                return -ENOMEM;
        while (s->fd >= 0 && got < n) {
                const ssize_t r = pread(s->fd, s->held_memory + got, n - got, (off_t)(offset + got));
                const int code = r < 0 ? -errno : 1;

                if (r > 0)
                        got += (size_t)r;
                else if (code != -EINTR) {
                        source_drop(s);
                        return code;
                }
        }
        if (s->fd < 0)
                s->held = s->memory + offset;
        s->held_at = offset;
        s->n_held = n;
        return 0;
}

/* One piece more. 0: the file has no more; -errno */
static ssize_t hold_piece(Source *s) {
        const size_t room = s->held_room - s->n_held;
        ssize_t n;

        do
                n = pread(s->fd, s->held_memory + s->n_held, room < READ_AHEAD ? room : READ_AHEAD, (off_t)(s->held_at + s->n_held));
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        s->n_held += (size_t)n;
        return n;
}

int source_hold_until(Source *s, uint64_t offset, size_t n) {
        if (offset < s->held_at || offset - s->held_at > s->n_held)
                return 1;
        while (s->n_held - (size_t)(offset - s->held_at) < n) {
                const ssize_t got = s->n_held < s->held_room ? hold_piece(s) : 1;

                if (s->n_held == s->held_room && s->n_held - (size_t)(offset - s->held_at) < n)
                        return 1;
                if (got <= 0)
                        return (int)got;
        }
        return 0;
}

void source_hold_from(Source *s, uint64_t offset) {
        const uint64_t before = offset - s->held_at;

        s->n_held = offset >= s->held_at && before < s->n_held ? s->n_held - (size_t)before : 0;
        if (s->n_held > 0)
                memmove(s->held_memory, s->held_memory + before, s->n_held);
        s->held_at = offset;
}

void source_drop(Source *s) {
        free(s->held_memory);
        s->held_memory = NULL;
        s->held = NULL;
        s->n_held = s->held_room = 0;
}

void source_close(Source *s) {
        if (s->owns_fd && s->fd >= 0)
                close(s->fd);
        free(s->window);
        source_drop(s);
        *s = SOURCE_NULL;
}

/* What is before `offset` is dropped. */
static void window_drop(Source *s, uint64_t offset) {
        const uint64_t before = offset - s->start;

        if (offset < s->start || before > s->n) { /* it does not touch what is here */
                s->n = 0;
                s->start = offset;
        } else {
                s->n -= (size_t)before;
                if (s->n > 0)
                        memmove(s->window, s->window + before, s->n);
                s->start = offset;
        }
}

/* Room for another piece behind what is here. -ENOMEM */
static int window_extend(Source *s) {
        uint8_t *larger;

        if (s->room - s->n >= READ_AHEAD)
                return 0;
        larger = realloc(s->window, 2 * s->n + 2 * READ_AHEAD);
        if (!larger)
                return -ENOMEM;
        s->window = larger;
        s->room = 2 * s->n + 2 * READ_AHEAD;
        return 0;
}

/* One piece more. 0: it has ended, or -errno. */
static ssize_t window_read(Source *s) {
        int r = window_extend(s);
        ssize_t n;

        if (r < 0)
                return r;
        do
                n = source_is_seekable(s) ? pread(s->fd, s->window + s->n, s->room - s->n, (off_t)(s->start + s->n)) :
                                            read(s->fd, s->window + s->n, s->room - s->n);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        s->n += (size_t)n;
        return n;
}

/* A pipe goes forward by reading. */
static int pipe_skip(Source *s, uint64_t offset) {
        while (offset > s->start + s->n && !s->has_ended) {
                ssize_t n;

                window_drop(s, s->start + s->n);
                n = window_read(s);
                if (n < 0)
                        return (int)n;
                s->has_ended = n == 0;
        }
        return 0;
}

static int window_fill(Source *s, uint64_t offset, size_t n) {
        int r = source_is_seekable(s) ? 0 : pipe_skip(s, offset);

        if (r < 0 || (offset >= s->start && offset - s->start <= s->n && s->n - (size_t)(offset - s->start) >= n))
                return r;
        if (!source_is_seekable(s) && offset > s->start + s->n)
                return 0; /* there is nothing */
        window_drop(s, offset);
        while (s->n < n && !s->has_ended) {
                ssize_t got = window_read(s);

                if (got < 0)
                        return (int)got;
                if (got == 0) {
                        s->has_ended = !source_is_seekable(s);
                        break;
                }
        }
        return 0;
}

int source_get(Source *s, uint64_t offset, size_t n, const uint8_t **ret, size_t *ret_n) {
        uint64_t left = s->size > offset ? s->size - offset : 0;
        int r;

        if (s->held && offset >= s->held_at && offset - s->held_at < s->n_held && n <= s->n_held - (size_t)(offset - s->held_at)) {
                *ret = s->held + (offset - s->held_at);
                *ret_n = n;
                return 0;
        }
        if (s->fd < 0) {
                *ret = left > 0 ? s->memory + offset : s->memory;
                *ret_n = left < n ? (size_t)left : n;
                return 0;
        }
        if (left < n)
                n = (size_t)left;
        r = n > 0 ? window_fill(s, offset, n) : 0;
        if (r < 0)
                return r;
        left = n > 0 && offset >= s->start && offset - s->start < s->n ? s->n - (offset - s->start) : 0;
        *ret = left > 0 ? s->window + (offset - s->start) : NULL;
        *ret_n = left < n ? (size_t)left : n;
        return 0;
}
