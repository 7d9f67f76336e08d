/* For verbs that take long: how much of a file was read, or what was written so far, on stderr, if that is a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Progress {
        bool is_shown;
        uint64_t size, farthest; /* bytes */
        uint32_t n_until;        /* calls until the clock is looked at */
        uint64_t next;           /* ns of CLOCK_MONOTONIC: when it is shown again */
} Progress;

/* Nothing is shown of what is no regular file. */
void progress_begin(Progress *p, const char *path);
/* Slow path of progress_show(). */
void progress_show_slow(Progress *p);
/* Of work whose end nobody knows; then it is shown by this, and not by bytes. */
void progress_begin_text(Progress *p);
void progress_show_text(const Progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes the line away. May be called twice. */
void progress_end(Progress *p);

/* So many bytes are behind it; orders other than that of the file jump, which does not take anything back. */
static inline void progress_show(Progress *p, uint64_t bytes) {
        if (!p->is_shown)
                return;
        if (bytes > p->farthest)
                p->farthest = bytes;
        if (p->n_until-- == 0)
                progress_show_slow(p);
}
