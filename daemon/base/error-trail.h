/*
 * For whoever carries a negative, and who absorbs it: where it began. A function that makes one says so, and callers that
 * know what it was about add that on its way:
 *
 *     return error_origin(-errno);
 *     return error_origin_of(-errno, "PERF_EVENT_IOC_ENABLE, CPU %u", cpu);
 *     return error_trace_of(r, "event %s", name);
 *
 * Both give back what they are given. Of 0 and of what is positive nothing is kept, and nothing of the text is evaluated: what
 * does not fail pays for a comparison. Who absorbs a negative logs error_text() of it.
 *
 * Each thread has its own trails. What a thread reports to another one begins there anew, or goes with error_trail_take().
 */
#pragma once

#include <stddef.h>

#define ERROR_TRAIL_PLACES 6  /* the origin, and the first that it was carried through */
#define ERROR_TRAIL_OBJECT 160

typedef struct ErrorPlace {
        const char *function, *file;
        unsigned line;
} ErrorPlace;

typedef struct ErrorTrail {
        int error; /* -errno; 0: none */
        size_t n;
        const ErrorPlace *places[ERROR_TRAIL_PLACES]; /* of static lifetime */
        char object[ERROR_TRAIL_OBJECT];              /* what it was about, the nearest first: "CPU 1, event sched:sched_switch" */
} ErrorTrail;

#define ERROR_TRAIL_NULL ((ErrorTrail){ .error = 0 })

/* For the macros. */
void error_trail_begin(int error, const ErrorPlace *place) __attribute__((cold));
void error_trail_pass(int error, const ErrorPlace *place) __attribute__((cold));
void error_trail_name(int error, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));

#define ERROR_TRAIL_AT(call, r, name)                                                                                  \
        ({                                                                                                             \
                const int trailed_ = (r);                                                                              \
                if (__builtin_expect(trailed_ < 0, 0)) {                                                               \
                        static const ErrorPlace here_ = { __func__, __FILE__, __LINE__ };                              \
                        call(trailed_, &here_);                                                                        \
                        name;                                                                                          \
                }                                                                                                      \
                trailed_;                                                                                              \
        })

/* A negative begins here: what a system call or a foreign library says, or our own running out. */
#define error_origin(r) ERROR_TRAIL_AT(error_trail_begin, r, (void)0)
#define error_origin_of(r, ...) ERROR_TRAIL_AT(error_trail_begin, r, error_trail_name(trailed_, __VA_ARGS__))
/* It passes here. One of which nobody has said where it began begins here. */
#define error_trace(r) ERROR_TRAIL_AT(error_trail_pass, r, (void)0)
#define error_trace_of(r, ...) ERROR_TRAIL_AT(error_trail_pass, r, error_trail_name(trailed_, __VA_ARGS__))

/*
 * What strerror(3) says of -r, and the trail, which ends with it: "Cannot allocate memory; from ring_open() at ring.c:28, CPU 1,
 * through supervisor_open_rings() at supervisor/changes/rings.c:90". Of the calling thread, until it asks again.
 */
const char *error_text(int r);

/* From one thread to another one: the trail of `r`, which may be none, becomes that of the thread that gives it. */
ErrorTrail error_trail_take(int r);
void error_trail_give(const ErrorTrail *trail);
