/*
 * For `record --rotate`: which tasks there are and what they have in memory, as the records that said so. A file that begins later begins with
 * them. Memory is bounded by what there is: a task that has ended, a program that was left by an exec, and a mapping whose place another one
 * took are forgotten.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct RecorderState RecorderState;

RecorderState *recorder_state_new(void);
/* NULL. */
RecorderState *recorder_state_free(RecorderState *s);

/* A record as it is written, behind its header; those that say nothing of this are no matter. */
void recorder_state_take(RecorderState *s, uint32_t type, uint16_t misc, const void *bytes, size_t n);

/* Gives all of them; code: what `put` gave, which ends it if it is not 0. */
typedef int RecorderStatePut(void *userdata, uint32_t type, uint16_t misc, const void *bytes, size_t n);
int recorder_state_put(const RecorderState *s, RecorderStatePut *put, void *userdata);
/* Gives those of one process, and forgets them. */
int recorder_state_give(RecorderState *s, uint32_t pid, RecorderStatePut *put, void *userdata);
