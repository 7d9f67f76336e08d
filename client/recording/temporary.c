/* A temporary file without a name: it goes with the process, however that ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/recording/damage.h"
#include "client/recording/runs.h"

#define DEFAULT_DIRECTORY "/var/tmp" /* on a disk, where /tmp may be memory: file-hierarchy(7) */

static const char *directory_of(const perfd_recording *r) {
        const char *directory = r->order_directory ? r->order_directory : secure_getenv("TMPDIR");

        return directory && directory[0] ? directory : DEFAULT_DIRECTORY;
}

static int fail(perfd_recording *r, int error, const char *what, uint64_t n) {
        return recording_fail(r, -error, "a temporary file in %s: %s after %llu bytes: %s; free space there, or give another directory (TMPDIR) "
                              "or more memory", directory_of(r), what, (unsigned long long)n, strerror(error));
}

/* Of a file system that has no O_TMPFILE. */
static int open_named(const char *directory) {
        char *name = NULL;
        int fd, error;

        if (asprintf(&name, "%s/perfd-order.XXXXXX", directory) < 0)
                return -ENOMEM;
        fd = mkostemp(name, O_CLOEXEC);
        error = fd < 0 ? errno : 0;
        if (fd >= 0 && unlink(name) < 0) {
                error = errno;
                close(fd);
        }
        free(name);
        return error > 0 ? -error : fd;
}

static int temporary_open(perfd_recording *r, Temporary *t) {
        const char *directory = directory_of(r);
        int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

        if (fd < 0)
                fd = -errno;
        if (fd == -EOPNOTSUPP || fd == -EISDIR)
                fd = open_named(directory);
        if (fd < 0)
                return recording_fail(r, fd, "a temporary file in %s: %s; give another directory (TMPDIR) or more memory", directory, strerror(-fd));
        t->fd = fd;
        t->buffer = malloc(RUN_BUFFER);
        return t->buffer ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

void temporary_close(Temporary *t) {
        if (t->fd >= 0)
                close(t->fd);
        free(t->buffer);
        *t = TEMPORARY_NULL;
}

int temporary_flush(perfd_recording *r, Temporary *t) {
        for (size_t at = 0; at < t->used;) {
                ssize_t n = pwrite(t->fd, t->buffer + at, t->used - at, (off_t)(t->n + at));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return fail(r, n < 0 ? errno : ENOSPC, "writing", t->n + at);
                at += (size_t)n;
        }
        t->n += t->used;
        t->used = 0;
        return 0;
}

int temporary_add(perfd_recording *r, Temporary *t, const Stored *head, const void *bytes) {
        const size_t size = stored_size(head), end = sizeof(*head) + head->size;
        int code = t->fd < 0 ? temporary_open(r, t) : 0;

        if (code == 0 && RUN_BUFFER - t->used < size)
                code = temporary_flush(r, t);
        if (code != 0)
                return code;
        memcpy(t->buffer + t->used, head, sizeof(*head));
        if (head->size > 0)
                memcpy(t->buffer + t->used + sizeof(*head), bytes, head->size);
        memset(t->buffer + t->used + end, 0, size - end);
        t->used += size;
        return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static int load(perfd_recording *r, const Temporary *t, Run *run) {
        const size_t wanted = run->end - run->at < RUN_BUFFER ? (size_t)(run->end - run->at) : RUN_BUFFER;

        if (!run->buffer)
                run->buffer = malloc(RUN_BUFFER);
        if (!run->buffer)
                return recording_fail(r, -ENOMEM, "no memory");
        run->loaded = run->at;
        run->n = 0;
        while (run->n < wanted) {
                ssize_t n = pread(t->fd, run->buffer + run->n, wanted - run->n, (off_t)(run->at + run->n));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return fail(r, n < 0 ? errno : EIO, "reading", run->at + run->n);
                run->n += (size_t)n;
        }
        return 0;
}

/* NULL: it is not wholly in the buffer. */
static const Stored *loaded_first(const Run *run) {
        const size_t at = (size_t)(run->at - run->loaded);
        const Stored *s;

        if (!run->buffer || run->at < run->loaded || run->at - run->loaded >= run->n || run->n - at < sizeof(*s))
                return NULL;
        s = (const Stored *)(const void *)(run->buffer + at);
        return stored_size(s) <= run->n - at ? s : NULL;
}

int run_first(perfd_recording *r, const Temporary *t, Run *run, const Stored **ret) {
        const Stored *s = loaded_first(run);

        if (!s) {
                int code = load(r, t, run);

                if (code != 0)
                        return code;
                s = loaded_first(run);
                if (!s)
                        return fail(r, EIO, "a record is not what was written", run->at);
        }
        run->time = s->time;
        run->sequence = s->sequence;
        *ret = s;
        return 0;
}

int run_step(perfd_recording *r, const Temporary *t, Run *run) {
        const Stored *s;
        int code = run_first(r, t, run, &s);

        if (code != 0)
                return code;
        run->at += stored_size(s);
        if (run->at < run->end)
                return run_first(r, t, run, &s);
        run_drop_buffer(run);
        return 0;
}

void run_drop_buffer(Run *run) {
        free(run->buffer);
        run->buffer = NULL;
        run->n = 0;
}
