/*
 * Records where a negative errno began. The function that creates it records its place, and callers that know the object of the
 * call add it:
 *
 *     return error_origin(-errno);
 *     return error_origin_of(-errno, "PERF_EVENT_IOC_ENABLE, CPU %u", cpu);
 *     return error_trace_of(r, "event %s", name);
 *
 * All return their first argument. For 0 and positive values nothing is recorded, and the text is not evaluated: success costs one
 * comparison. The code that absorbs a negative logs error_text() of it.
 *
 * Each thread has its own trails. An error that is reported to another thread begins a new trail there, unless
 * error_trail_take() and error_trail_give() pass it on.
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
        char object[ERROR_TRAIL_OBJECT];              /* its objects, the innermost first: "CPU 1, event sched:sched_switch" */
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

/* A negative begins here: the error of a system call or a library, or a failed allocation. */
#define error_origin(r) ERROR_TRAIL_AT(error_trail_begin, r, (void)0)
#define error_origin_of(r, ...) ERROR_TRAIL_AT(error_trail_begin, r, error_trail_name(trailed_, __VA_ARGS__))
/* A negative passes here. If it has no origin yet, it begins here. */
#define error_trace(r) ERROR_TRAIL_AT(error_trail_pass, r, (void)0)
#define error_trace_of(r, ...) ERROR_TRAIL_AT(error_trail_pass, r, error_trail_name(trailed_, __VA_ARGS__))

/*
 * strerror(3) of -r and its trail, which is consumed: "Cannot allocate memory; from ring_open() at ring.c:28, CPU 1,
 * through readers_open_ring() at supervisor/changes/rings.c:90". Valid until the next call by this thread.
 */
const char *error_text(int r);

/* Passes the trail of `r`, if any, to another thread: that thread calls error_trail_give(). */
ErrorTrail error_trail_take(int r);
void error_trail_give(const ErrorTrail *trail);
