/*
 * For the supervisor: what is left out of a request, or named twice in it, which is no reason to refuse it. However much of it
 * there is, it becomes one line of the log for each request, or for each configuration that is read. Main thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NOTE_NAME_SIZE 128

/* Of each kind the first one, and how many there are. */
typedef struct Notes {
        char gone_of[NOTE_NAME_SIZE]; /* the event that names the process */
        uint32_t gone;
        size_t n_gone; /* of that event */
        size_t n_gone_elsewhere; /* looks at other events that found some */
        uint32_t duplicate;
        size_t n_duplicates; /* pids and tids that are named again */
        char nested_in[NOTE_NAME_SIZE];
        size_t n_nested; /* cgroups that are counted with another one of their event */
        char left_out[640];
        size_t n_left_out; /* events of globs */
        char unchecked[NOTE_NAME_SIZE];
        size_t n_unchecked; /* probes of which nobody knows whether an instruction begins there */
} Notes;

void notes_add_gone(Notes *notes, const char *event, uint32_t pid, size_t n);
void notes_add_duplicates(Notes *notes, uint32_t id, size_t n);
void notes_add_nested(Notes *notes, const char *event, size_t n);
void notes_add_left_out(Notes *notes, const char *why);
void notes_add_unchecked(Notes *notes, const char *event);
/* Into the log, if there are any, and forgets them. who: "add by perfctl, pid 1, uid 0". */
void notes_say(Notes *notes, const char *who);
void notes_forget(Notes *notes);
