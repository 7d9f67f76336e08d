#include "tests/unit/played-kernel.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/host/hotplug.h"
#include "tests/unit/played-sample.h"
#include "tests/unit/played-threads.h"

#define RING_MOST (1 << 20)
#define WORDS_MOST 8

static struct {
        PlayedFd fds[PLAYED_FDS_MAX];
        uint64_t last_id;
        PlayedCall call; /* that fails */
        unsigned left;   /* calls until it does, with it; 0: it has, or none is to */
        int error;
        bool is_set, is_in_reader;

        bool keeps_occurring, writes;
        uint64_t n_moments;
        nsec_t takes;
        unsigned n_at_once, most_at_once;
        bool is_offline[PLAYED_CPUS];
        struct {
                int cpu; /* -1: lost */
                bool is_online;
        } words[WORDS_MOST];
        size_t n_words;
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

/* A member as its leader. */
static bool counts(const PlayedFd *p) {
        return p->is_on && !p->is_dead && (p->leader < 0 || kernel.fds[p->leader].is_on);
}

uint64_t played_keep_occurring(bool on) {
        kernel.keeps_occurring = on;
        if (on)
                kernel.n_moments = 0;
        return kernel.n_moments;
}

static void pass_moment(void) {
        if (!kernel.keeps_occurring)
                return;
        played_occur(1);
        kernel.n_moments++;
}

void played_take(nsec_t time) {
        kernel.takes = time;
        kernel.n_at_once = kernel.most_at_once = 0;
}

void played_rest(void) {
        kernel.n_at_once = 0;
}

unsigned played_most_at_once(void) {
        return kernel.most_at_once;
}

static void take_time(void) {
        played_let_pass(kernel.takes);
        if (++kernel.n_at_once > kernel.most_at_once)
                kernel.most_at_once = kernel.n_at_once;
}

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        int fd;

        assert(flags & PERF_FLAG_FD_CLOEXEC);
        if (fails_now(PLAYED_OPEN))
                return -1;
        if (cpu >= 0 && !played_cpu_is_online(cpu)) {
                errno = ENODEV;
                return -1;
        }
        assert(group < 0 || find(group));
        fd = memfd_create("perf event", MFD_CLOEXEC);
        assert(fd >= 0 && fd < PLAYED_FDS_MAX && ftruncate(fd, RING_MOST) == 0);
        kernel.fds[fd] = (PlayedFd){ .is_open = true, .is_on = !attr->disabled, .attr = *attr, .cpu = cpu, .output = -1,
                                     .leader = group, .pid = pid, .id = ++kernel.last_id };
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
        pass_moment();
        take_time();
        if (fails_now(PLAYED_IOCTL))
                return -1;
        follow_ioctl(p, request, argument);
        return 0;
}

static size_t put_names(const PlayedFd *p, uint64_t format, uint64_t *to) {
        size_t n = 0;

        if (format & PERF_FORMAT_ID)
                to[n++] = p->id;
        if (format & PERF_FORMAT_LOST)
                to[n++] = p->lost;
        return n;
}

static size_t put_value(const PlayedFd *p, uint64_t format, uint64_t *to) {
        to[0] = p->count;
        return 1 + put_names(p, format, to + 1);
}

static size_t put_times(PlayedFd *p, uint64_t format, uint64_t *to) {
        size_t n = 0;

        p->running += counts(p);
        if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
                to[n++] = p->running;
        if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
                to[n++] = p->running;
        return n;
}

/* | number | enabled | running |, and of each | value | id | lost |, in the order in which they were opened, as their ids are */
static size_t read_group(PlayedFd *leader, int fd, uint64_t format, uint64_t *to) {
        uint64_t before = leader->id;
        size_t n = 1;

        to[0] = 1;
        n += put_times(leader, format, to + n);
        n += put_value(leader, format, to + n);
        for (const PlayedFd *next = leader; next; to[0] += next != NULL) {
                next = NULL;
                for (int i = 0; i < PLAYED_FDS_MAX; i++)
                        if (kernel.fds[i].is_open && kernel.fds[i].leader == fd && kernel.fds[i].id > before &&
                            (!next || kernel.fds[i].id < next->id))
                                next = &kernel.fds[i];
                if (next) {
                        before = next->id;
                        n += put_value(next, format, to + n);
                }
        }
        return n;
}

/* | value | enabled | running | id | lost |, each but the first only if its attr asks for it */
static ssize_t read_counts(PlayedFd *p, int fd, uint64_t *to, size_t size) {
        const uint64_t format = p->attr.read_format;
        size_t n;

        assert(size >= (format == 0 ? 1 : 5) * sizeof(*to));
        if (format & PERF_FORMAT_GROUP)
                n = read_group(p, fd, format, to);
        else {
                n = put_value(p, 0, to);
                n += put_times(p, format, to + n);
                n += put_names(p, format, to + n);
        }
        assert(n * sizeof(*to) <= size);
        return (ssize_t)(n * sizeof(*to));
}

void played_write_samples(bool on) {
        kernel.writes = on;
}

static void write_ring(int fd, uint64_t at, const void *from, size_t n) {
        assert(pwrite(fd, from, n, (off_t)(sysconf(_SC_PAGESIZE) + (off_t)at)) == (ssize_t)n);
}

/* Into the ring of its carrier, where a word is never cut in two. */
static void write_sample(PlayedFd *p, int fd) {
        const PlayedFd *carrier = find(p->output);
        uint64_t counts[PLAYED_SAMPLE_MOST], words[PLAYED_SAMPLE_MOST], head;
        const off_t at = offsetof(struct perf_event_mmap_page, data_head);
        size_t n;

        if (!carrier || p->attr.freq || p->attr.sample_period != 1)
                return;
        n = (size_t)read_counts(p, fd, counts, sizeof(counts)) / sizeof(*counts);
        n = played_sample(p, clock_now(CLOCK_MONOTONIC), counts, n, words);
        assert(pread(p->output, &head, sizeof(head), at) == sizeof(head));
        for (size_t i = 0; i < n; i++, head += sizeof(*words))
                write_ring(p->output, head % carrier->ring_size, &words[i], sizeof(*words));
        assert(pwrite(p->output, &head, sizeof(head), at) == sizeof(head)); /* as the kernel does: behind what it says is there */
}

static void occur(int fd, bool is_full) {
        PlayedFd *p = &kernel.fds[fd];

        if ((p->output < 0 && p->leader < 0) || !counts(p))
                return;
        p->count++;
        if (is_full)
                p->lost += p->output >= 0; /* a member writes none */
        else if (kernel.writes)
                write_sample(p, fd);
}

static void occur_all(uint64_t n, bool is_full) {
        for (; n > 0; n--)
                for (int fd = 0; fd < PLAYED_FDS_MAX; fd++)
                        occur(fd, is_full);
}

void played_occur(uint64_t n) {
        occur_all(n, false);
}

void played_lose(uint64_t n) {
        occur_all(n, true);
}

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size) {
        PlayedFd *p = find(fd);

        if (!p)
                return __real_read(fd, to, size);
        take_time();
        return fails_now(PLAYED_READ) ? -1 : read_counts(p, fd, to, size);
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
        assert(!find(fd) || size <= RING_MOST);
        if (find(fd))
                find(fd)->ring_size = size - (size_t)sysconf(_SC_PAGESIZE);
        return find(fd) && fails_now(PLAYED_MMAP) ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

/* ---- CPUs -------------------------------------------------------------------------------------------------------- */

void played_set_cpu(int cpu, bool is_online) {
        kernel.is_offline[cpu - PLAYED_CPU] = !is_online;
        for (int fd = 0; fd < PLAYED_FDS_MAX && !is_online; fd++)
                kernel.fds[fd].is_dead |= kernel.fds[fd].is_open && kernel.fds[fd].cpu == cpu;
}

bool played_cpu_is_online(int cpu) {
        const size_t n = sizeof(kernel.is_offline) / sizeof(kernel.is_offline[0]);

        return (size_t)(cpu - PLAYED_CPU) >= n || !kernel.is_offline[cpu - PLAYED_CPU]; /* doctor tries CPUs of the machine too */
}

void played_tell_cpu(int cpu, bool is_online) {
        assert(kernel.n_words < WORDS_MOST);
        kernel.words[kernel.n_words].cpu = cpu;
        kernel.words[kernel.n_words++].is_online = is_online;
}

void played_lose_words(void) {
        played_tell_cpu(-1, false);
}

int __wrap_hotplug_next(int fd, uint32_t *ret_cpu, bool *ret_online);
int __wrap_hotplug_next(int fd, uint32_t *ret_cpu, bool *ret_online) {
        int cpu = kernel.words[0].cpu;

        if (kernel.n_words == 0)
                return HOTPLUG_E_NONE;
        *ret_cpu = (uint32_t)cpu;
        *ret_online = kernel.words[0].is_online;
        memmove(&kernel.words[0], &kernel.words[1], --kernel.n_words * sizeof(kernel.words[0]));
        return cpu < 0 ? HOTPLUG_E_OVERRUN : 0;
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
