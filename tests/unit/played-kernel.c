#include "tests/unit/played-kernel.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/kernel/event/open.h"

#define RING_MOST (1 << 20)

static struct {
        PlayedFd fds[PLAYED_FDS_MAX];
        uint64_t last_id;
        PlayedCall call; /* that fails */
        unsigned left;   /* calls until it does, with it; 0: it has, or none is to */
        int error;
        bool is_set, is_in_reader;
} kernel;

/* ---- what fails -------------------------------------------------------------------------------------------------- */

void played_fail(PlayedCall call, unsigned n, int error) {
        kernel.call = call;
        kernel.left = n;
        kernel.error = error;
        kernel.is_set = n > 0;
}

bool played_has_failed(void) {
        return kernel.is_set && kernel.left == 0;
}

void played_enter_reader(bool on) {
        kernel.is_in_reader = on;
}

static bool fails_now(PlayedCall call) {
        if (call != kernel.call || kernel.left == 0 || (kernel.is_in_reader && call != PLAYED_IOCTL) || --kernel.left > 0)
                return false;
        errno = kernel.error;
        return true;
}

/* ---- fds --------------------------------------------------------------------------------------------------------- */

static PlayedFd *find(int fd) {
        return fd >= 0 && fd < PLAYED_FDS_MAX && kernel.fds[fd].is_open ? &kernel.fds[fd] : NULL;
}

const PlayedFd *played_fd(int fd) {
        return find(fd);
}

size_t played_count_open(void) {
        size_t n = 0;

        for (int fd = 0; fd < PLAYED_FDS_MAX; fd++)
                n += kernel.fds[fd].is_open;
        return n;
}

void played_occur(uint64_t n) {
        for (int fd = 0; fd < PLAYED_FDS_MAX; fd++)
                if (kernel.fds[fd].is_on && kernel.fds[fd].output >= 0)
                        kernel.fds[fd].count += n;
}

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        int fd;

        assert(flags & PERF_FLAG_FD_CLOEXEC);
        if (fails_now(PLAYED_OPEN))
                return -1;
        fd = memfd_create("perf event", MFD_CLOEXEC);
        assert(fd >= 0 && fd < PLAYED_FDS_MAX && ftruncate(fd, RING_MOST) == 0);
        kernel.fds[fd] = (PlayedFd){ .is_open = true, .is_on = !attr->disabled, .attr = *attr, .cpu = cpu, .output = -1,
                                     .id = ++kernel.last_id };
        return fd;
}

void played_start(void) {
        assert(played_count_open() == 0);
        memset(&kernel, 0, sizeof(kernel));
        open_perf_event = play_open;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
        PlayedFd *p = find(fd);

        if (p)
                *p = (PlayedFd){ .is_open = false };
        return __real_close(fd);
}

/* ---- calls of an fd ---------------------------------------------------------------------------------------------- */

static void follow_ioctl(PlayedFd *p, unsigned long request, void *argument) {
        switch (request) {
        case PERF_EVENT_IOC_ID:
                *(uint64_t *)argument = p->id;
                break;
        case PERF_EVENT_IOC_SET_OUTPUT:
                p->output = (int)(intptr_t)argument;
                assert(find(p->output));
                break;
        case PERF_EVENT_IOC_SET_FILTER:
                assert(strlen(argument) < sizeof(p->filter));
                strcpy(p->filter, argument);
                break;
        case PERF_EVENT_IOC_ENABLE:
        case PERF_EVENT_IOC_DISABLE:
                p->is_on = request == PERF_EVENT_IOC_ENABLE;
                break;
        default:
                assert(!"an ioctl that is not played");
        }
}

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
        PlayedFd *p = find(fd);
        void *argument;
        va_list ap;

        va_start(ap, request);
        argument = va_arg(ap, void *);
        va_end(ap);
        if (!p)
                return __real_ioctl(fd, request, argument);
        if (fails_now(PLAYED_IOCTL))
                return -1;
        follow_ioctl(p, request, argument);
        return 0;
}

/* | value | enabled | running | id | lost |, each but the first only if its attr asks for it */
static ssize_t read_counts(const PlayedFd *p, uint64_t *to, size_t size) {
        const uint64_t format = p->attr.read_format;
        size_t n = 0;

        assert(!(format & PERF_FORMAT_GROUP) && size >= 5 * sizeof(*to));
        to[n++] = p->count;
        if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
                to[n++] = 1;
        if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
                to[n++] = 1;
        if (format & PERF_FORMAT_ID)
                to[n++] = p->id;
        if (format & PERF_FORMAT_LOST)
                to[n++] = 0;
        return (ssize_t)(n * sizeof(*to));
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size) {
        const PlayedFd *p = find(fd);

        if (!p)
                return __real_read(fd, to, size);
        return fails_now(PLAYED_READ) ? -1 : read_counts(p, to, size);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
        assert(!find(fd) || size <= RING_MOST);
        return find(fd) && fails_now(PLAYED_MMAP) ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
        return fails_now(PLAYED_ALLOCATION) ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
        return fails_now(PLAYED_ALLOCATION) ? NULL : __real_calloc(n, size);
}

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size) {
        return fails_now(PLAYED_ALLOCATION) ? NULL : __real_reallocarray(old, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
        return fails_now(PLAYED_ALLOCATION) ? NULL : __real_strdup(text);
}
