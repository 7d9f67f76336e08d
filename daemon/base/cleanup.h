/* Resources that are released at the end of their scope, and explicit transfers of ownership. Any thread. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* DEFINE_CLEANUP(Ring *, ring_free) gives ring_freep() for _cleanup_(ring_freep) */
#define DEFINE_CLEANUP(Type, function)                                                                                 \
        static inline void function##p(Type *p) {                                                                      \
                if (*p)                                                                                                \
                        function(*p);                                                                                  \
        }

static inline void freep(void *p) {
        free(*(void **)p);
}

/* Closes fd unless it is -1, and returns -1, so that `fd = close_fd(fd)` leaves the null image; preserves errno. */
int close_fd(int fd);

static inline void close_fdp(int *fd) {
        close_fd(*fd);
}

static inline void fclosep(FILE **f) {
        if (*f)
                fclose(*f);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(close_fdp)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* Transfers ownership out of the variable, which is null afterwards. */
#define TAKE_PTR(p)                                                                                                    \
        ({                                                                                                             \
                __typeof__(p) *take_ = &(p), taken_ = *take_;                                                          \
                *take_ = NULL;                                                                                         \
                taken_;                                                                                                \
        })

#define TAKE_FD(fd)                                                                                                    \
        ({                                                                                                             \
                int *take_ = &(fd), taken_ = *take_;                                                                   \
                *take_ = -1;                                                                                           \
                taken_;                                                                                                \
        })

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
