/*
 * What the kernel's side records say of tasks, on its way from a reader to the dispatcher: as entries of BATCH_MARKER in a
 * batch. Its bytes are this struct, then the text.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TASK_TEXT_MAX ((size_t)4096) /* PATH_MAX: longer texts are cut */

typedef enum TaskNoteKind {
        TASK_NOTE_FORK,   /* pid, tid of the new one; parent_pid, parent_tid */
        TASK_NOTE_COMM,   /* text: its new name */
        TASK_NOTE_EXEC,   /* the same, and it is another program from now on */
        TASK_NOTE_MAP,    /* text: a file that was mapped executable; after an exec the first one is the program's */
        TASK_NOTE_CGROUP, /* tid moved, if it is a leader with its process: cgroup, and its path as text; no pid */
        TASK_NOTE_EXIT,
} TaskNoteKind;

typedef struct TaskNote {
        TaskNoteKind kind;
        uint32_t pid, tid, parent_pid, parent_tid;
        uint32_t n_text;
        uint64_t cgroup;
        const char *text; /* not terminated */
} TaskNote;

/* How long it is; 0: it does not fit into `room`, and nothing was written. */
static inline size_t task_note_put(const TaskNote *n, uint8_t *to, size_t room) {
        if (sizeof(*n) + n->n_text > room)
                return 0;
        memcpy(to, n, sizeof(*n));
        if (n->n_text > 0)
                memcpy(to + sizeof(*n), n->text, n->n_text);
        return sizeof(*n) + n->n_text;
}

/* Its text stays in `bytes`. */
static inline TaskNote task_note_get(const uint8_t *bytes, size_t length) {
        TaskNote n;

        assert(length >= sizeof(n));
        memcpy(&n, bytes, sizeof(n));
        assert(length == sizeof(n) + n.n_text);
        n.text = (const char *)bytes + sizeof(n);
        return n;
}
