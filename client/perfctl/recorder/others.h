/*
 * For `record` of processes, as of a command: the stream says who begins on the whole host, and a file has those that are recorded. What others
 * do waits, for as long as they live: a sample of one, which nothing has announced, brings it along.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/perfctl/recorder/state.h"

typedef struct Others Others;

Others *others_new(void);
/* NULL. Takes NULL. */
Others *others_free(Others *o);

/* That process is recorded, and so is what it begins. False: it was already. */
bool others_add_recorded(Others *o, uint32_t pid);
/* Whether it is one of the others. */
bool others_has(const Others *o, uint32_t pid);
/* The same of one that begins, or of its thread: it is what its parent is, also if its pid was another's before. */
bool others_has_child(Others *o, uint32_t pid, uint32_t ppid);
/* A side record of one of the others, as recorder_state_take(). */
void others_take(Others *o, uint32_t type, uint16_t misc, const void *bytes, size_t n);
/* Gives what waits of that process, which is recorded now. 0, or the first code of `put` that is not. */
int others_give(Others *o, uint32_t pid, RecorderStatePut *put, void *userdata);
