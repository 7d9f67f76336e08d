/*
 * For report, flame and export: samples added up by their stacks. Whoever reads samples names their frames once, and adds each sample
 * by the ids of its frames; the views and the files are made from the sums. Memory is bounded by what is distinct, not by the number
 * of samples. One thread at a time; a profile owns all that it was given, and hands out pointers that last as long as it does.
 *
 * Errors: -ENOMEM, and what is a fault of the input, PROFILE_E_*; the profile is then as it was before the call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/profile/id-table.h"

#define PROFILE_VALUES_MAX 8
#define PROFILE_DEPTH_MAX 4096       /* frames of a stack; kernel.perf_event_max_stack is 127 as shipped, inlined ones come on top */
#define PROFILE_IDS_MAX (1u << 27)   /* strings, functions, frames, tasks, stacks: of each */
#define PROFILE_TEXT_MAX (1u << 16)  /* bytes of a name, with its NUL */

enum {
        PROFILE_E_TOO_DEEP = 1, /* more frames than PROFILE_DEPTH_MAX */
        PROFILE_E_TOO_MANY,     /* more distinct ones than PROFILE_IDS_MAX */
        PROFILE_E_TOO_LONG,     /* a name of more than PROFILE_TEXT_MAX */
        PROFILE_E_OVERFLOW,     /* a sum of more than 64 bits */
        PROFILE_E_NO_ID,        /* a frame or a task that this profile did not give */
        PROFILE_E_UNLIKE,       /* two profiles that do not have the same values */
};

typedef enum FrameKind {
        FRAME_USER,
        FRAME_KERNEL,
        FRAME_INLINED,
        FRAME_OFF_CPU,
        N_FRAME_KINDS,
} FrameKind;

/* What a sample counts: its name and unit, as "samples" "count" or "cycles" "count". */
typedef struct ProfileValue {
        const char *name, *unit;
        uint64_t period; /* of what is counted, in that unit, from one sample to the next; 0: it varies, or is not known */
} ProfileValue;

/* All strings but symbol may be NULL: not known. */
typedef struct ProfileFrame {
        const char *symbol;
        const char *dso;      /* path of what was mapped there, or [kernel.kallsyms] */
        const char *build_id; /* hexadecimal */
        const char *file;     /* of the source */
        uint32_t line;        /* in it; 0: not known */
        uint64_t address;     /* in the dso; 0: not known */
        FrameKind kind;
} ProfileFrame;

typedef struct ProfileTask {
        const char *comm;
        const char *container; /* NULL: none */
        uint32_t pid, tid;
} ProfileTask;

/* ---- what is in a profile: ids are indexes; those of strings that are not known are ID_NONE ------------------------------------ */

/* What a report has one line for, and a flame graph one name: frames that differ in their lines or addresses have the same. */
typedef struct Function {
        uint32_t symbol, dso, build_id, file; /* ids of strings */
        FrameKind kind;
} Function;

typedef struct Frame {
        uint32_t function, line;
        uint64_t address;
} Frame;

typedef struct Task {
        uint32_t comm, container; /* ids of strings */
        uint32_t pid, tid;
} Task;

typedef struct Stack {
        uint32_t task, n_frames;
        uint64_t first; /* of its frames in stack_frames */
} Stack;

typedef struct Profile {
        ProfileValue values[PROFILE_VALUES_MAX];
        size_t n_values;
        char **strings;
        Function *functions;
        Frame *frames;
        Task *tasks;
        Stack *stacks;
        uint32_t *stack_frames;
        uint64_t *sums; /* n_values for each stack */
        uint32_t n_strings, n_functions, n_frames, n_tasks, n_stacks;
        size_t n_stack_frames, stack_frames_room, stacks_room;
        uint64_t totals[PROFILE_VALUES_MAX];
        uint64_t first_nsec, last_nsec; /* since 1970; 0: no sample had a time */
        uint64_t duration_nsec; /* by a clock whose wall time may not be known; 0: that of wall time */
        uint64_t seed;
        IdTable string_ids, function_ids, frame_ids, task_ids, stack_ids;
} Profile;

/* Names and units are copied. NULL: no memory, or n_values is not 1 to PROFILE_VALUES_MAX. */
Profile *profile_new(const ProfileValue *values, size_t n_values);
Profile *profile_free(Profile *p); /* NULL */

/* The id of a frame, and of a task; the same for the same. For each distinct one, not for each sample: remember them by address. */
int profile_add_frame(Profile *p, const ProfileFrame *frame, uint32_t *ret_frame);
int profile_add_task(Profile *p, const ProfileTask *task, uint32_t *ret_task);
/* A sample, or several alike: its frames from the outermost to the one that ran. wall_nsec since 1970, 0 if not known. */
int profile_add(Profile *p, uint32_t task, const uint32_t *frames, size_t n_frames, const uint64_t *values, uint64_t wall_nsec);
/* Its parts: the id of a stack, the same for the same, and a sample that has it. */
int profile_add_stack(Profile *p, uint32_t task, const uint32_t *frames, size_t n_frames, uint32_t *ret_stack);
int profile_add_to(Profile *p, uint32_t stack, const uint64_t *values, uint64_t wall_nsec);

/* All samples of another profile, whose values become those from first_value on. What was added before an error stays. */
int profile_append(Profile *p, const Profile *other, size_t first_value);

/* NULL for ID_NONE. */
static inline const char *profile_string(const Profile *p, uint32_t id) {
        return id == ID_NONE ? NULL : p->strings[id];
}

/* Of a function: the samples in which it ran itself, and those in whose stack it was, each counted once however often it was there. */
typedef struct FunctionSum {
        uint64_t self, total;
} FunctionSum;

/* One for each function, of values[value]; malloc. */
int profile_sum_functions(const Profile *p, size_t value, FunctionSum **ret_sums);
