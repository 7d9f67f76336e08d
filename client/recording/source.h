/* For this folder alone: where the bytes of a recording come from: memory, a file, or a pipe, which only goes forward. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_UNKNOWN UINT64_MAX /* the size of a pipe */

typedef struct Source {
        int fd;                /* -1: memory */
        bool owns_fd;
        uint64_t size;         /* bytes */
        const uint8_t *memory;
        uint8_t *window;       /* bytes [start, start + n) of the recording */
        size_t room, n;
        uint64_t start;
        bool has_ended;        /* a pipe: nothing follows the window */
        const uint8_t *held;   /* source_hold(): bytes [held_at, held_at + n_held), which stay; NULL: none */
        uint8_t *held_memory;  /* of a file */
        uint64_t held_at;
        size_t n_held, held_room;
} Source;

#define SOURCE_NULL ((Source){ .fd = -1 })

void source_of_memory(Source *s, const void *bytes, size_t n);
/* Takes the fd if `owns`. 0; -errno */
int source_of_fd(Source *s, int fd, bool owns);
/* Idempotent. */
void source_close(Source *s);

static inline bool source_is_seekable(const Source *s) {
        return s->size != SOURCE_UNKNOWN;
}

/* Reads so many bytes into memory, where they stay until source_drop(). 0; 1: there are fewer; -ENOMEM, -errno of read(2) */
int source_hold(Source *s, uint64_t offset, size_t n);
void source_drop(Source *s);
/* The same of a file, piece by piece: there is room for so many bytes from that offset on, of which none are here yet. 0; -ENOMEM */
int source_hold_room(Source *s, uint64_t offset, size_t room);
/* Until n bytes from that offset on are held, or the file has no more. 0; 1: there is no room for them, or none of what is held is of them; -errno */
int source_hold_until(Source *s, uint64_t offset, size_t n);
/* What is held begins there from now on. What lies before goes. */
void source_hold_from(Source *s, uint64_t offset);

/* Whether bytes, that are somewhere, are those. */
static inline bool source_is_held(const Source *s, const uint8_t *bytes) {
        return s->held && (uintptr_t)bytes >= (uintptr_t)s->held && (uintptr_t)bytes - (uintptr_t)s->held <= s->n_held;
}

/* What of it is here already, from that offset on. */
static inline const uint8_t *source_here(const Source *s, uint64_t offset, uint64_t *ret_n) {
        if (s->held && offset >= s->held_at && offset - s->held_at < s->n_held) {
                *ret_n = s->n_held - (offset - s->held_at);
                return s->held + (offset - s->held_at);
        }
        if (s->fd < 0) {
                *ret_n = offset < s->size ? s->size - offset : 0;
                return offset < s->size ? s->memory + offset : NULL;
        }
        *ret_n = offset >= s->start && offset - s->start < s->n ? s->n - (offset - s->start) : 0;
        return *ret_n > 0 ? s->window + (offset - s->start) : NULL;
}

/* Whether bytes of it, that are here, may go when others are asked for. */
static inline bool source_is_passing(const Source *s, const uint8_t *bytes) {
        return s->window && (uintptr_t)bytes >= (uintptr_t)s->window && (uintptr_t)bytes - (uintptr_t)s->window < s->room;
}

/*
 * As many bytes as there are from that offset on, at most n; they stay until the next call. A pipe: what lies before an offset that was
 * asked for is gone. Memory is taken for what there is, not for what is asked for. 0; -ENOMEM, -errno of read(2)
 */
int source_get(Source *s, uint64_t offset, size_t n, const uint8_t **ret, size_t *ret_n);
