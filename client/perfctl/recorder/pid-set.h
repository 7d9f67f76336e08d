/* For this folder: a set of processes or threads, one bit for each that Linux can have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PIDS ((uint32_t)1 << 22) /* PID_MAX_LIMIT of Linux: what is larger is none, and in no set */

/* In memory of calloc(3), of which pages that are not touched take nothing. */
typedef struct PidSet {
        uint64_t bits[PIDS / 64];
} PidSet;

static inline bool pid_set_has(const PidSet *s, uint32_t pid) {
        return pid < PIDS && (s->bits[pid / 64] >> pid % 64 & 1) != 0;
}

static inline void pid_set_add(PidSet *s, uint32_t pid) {
        if (pid < PIDS)
                s->bits[pid / 64] |= UINT64_C(1) << pid % 64;
}

static inline void pid_set_remove(PidSet *s, uint32_t pid) {
        if (pid < PIDS)
                s->bits[pid / 64] &= ~(UINT64_C(1) << pid % 64);
}
