/*
 * For LD_PRELOAD: a perfd whose wall clock is another one than that of this machine, by a known amount, and says of its error what it is
 * told to. The other clocks are untouched, so that what is true can be compared.
 *
 *   WALL_OFFSET      a file of 8 bytes, a signed number of ns that is added to CLOCK_REALTIME; it may change at any time
 *   WALL_ERROR       us: adjtimex(2) says that this is maxerror, and that the clock is synchronized
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000

static const volatile int64_t *offset;
static long error;

__attribute__((constructor)) static void begin(void) {
        const char *path = getenv("WALL_OFFSET"), *text = getenv("WALL_ERROR");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

        offset = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
        if (offset == MAP_FAILED || !text)
                abort();
        (void)close(fd);
        error = atol(text);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t) {
        static int (*next)(clockid_t, struct timespec *);
        int r;

        if (!next)
                next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        r = next(id, t);
        if (r == 0 && id == CLOCK_REALTIME && offset) {
                int64_t ns = (int64_t)t->tv_sec * NSEC_PER_SEC + t->tv_nsec + *offset;

                *t = (struct timespec){ .tv_sec = ns / NSEC_PER_SEC, .tv_nsec = ns % NSEC_PER_SEC };
        }
        return r;
}

/* perfd's way to adjtimex(2), and to others. */
__attribute__((visibility("default"))) long syscall(long number, ...) {
        static long (*next)(long, ...);
        long a[6], r;
        va_list ap;

        va_start(ap, number);
        for (int i = 0; i < 6; i++)
                a[i] = va_arg(ap, long);
        va_end(ap);
        if (!next)
                next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
        r = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (number == SYS_adjtimex && r >= 0) {
                struct timex *t = (struct timex *)a[0]; /* NOLINT: that is what it is */

                t->maxerror = error;
                t->status &= ~STA_UNSYNC;
                r = TIME_OK;
        }
        return r;
}
