/* The cursor stays at the beginning of the line, so that a message that comes meanwhile is written over it. */
#include "client/perfctl/print/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"

#define INTERVAL_NSEC UINT64_C(200000000)
#define N_BETWEEN 4096 /* calls: some ms of work */

void progress_begin(Progress *p, const char *path) {
        struct stat st;

        *p = (Progress){ .is_shown = false };
        if (!isatty(STDERR_FILENO) || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
                return;
        p->is_shown = true;
        p->size = (uint64_t)st.st_size;
}

void progress_show_slow(Progress *p) {
        const uint64_t time = clock_read(CLOCK_MONOTONIC);

        p->n_until = N_BETWEEN;
        if (time < p->next)
                return;
        p->next = time + INTERVAL_NSEC;
        (void)fprintf(stderr, "\rreading: %3" PRIu64 " %%\r", p->farthest < p->size ? p->farthest * 100 / p->size : 100);
        (void)fflush(stderr);
}

void progress_begin_text(Progress *p) {
        *p = (Progress){ .is_shown = isatty(STDERR_FILENO) };
}

void progress_show_text(const Progress *p, const char *format, ...) {
        va_list args;

        if (!p->is_shown)
                return;
        (void)putc('\r', stderr);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        (void)fputs("\033[K\r", stderr); /* EL of ECMA-48 */
        (void)fflush(stderr);
}

void progress_end(Progress *p) {
        if (!p->is_shown)
                return;
        p->is_shown = false;
        (void)fputs("\r\033[K", stderr); /* EL of ECMA-48 */
        (void)fflush(stderr);
}
