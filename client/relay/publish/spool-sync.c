#include "client/relay/publish/spool-sync.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"

struct SpoolSync {
        Thread thread;
        int directory, marks; /* marks: -1 if they are not written */
        uid_t owner;          /* of the directory */

        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_stopping, is_busy;
        uint64_t from, to; /* numbers of files */
        int error;
};

/* One that is not there any more has nothing that is not stored, and one that is not the relay's has nothing of it. */
static int sync_file(const SpoolSync *y, uint64_t number) {
        _cleanup_close_ int fd = -1;
        char name[SPOOL_NAME_SIZE];
        struct stat st;

        spool_segment_name(number, name);
        if (fstatat(y->directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : errno;
        if (spool_find_foreign(y->owner, &st))
                return 0;
        fd = openat(y->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : errno;
        return fdatasync(fd) < 0 ? errno : 0;
}

static int sync_files(const SpoolSync *y, uint64_t from, uint64_t to) {
        int error = 0;

        for (uint64_t i = from; i <= to && error == 0; i++)
                error = sync_file(y, i);
        if (error == 0 && ((y->marks >= 0 && fdatasync(y->marks) < 0) || fsync(y->directory) < 0))
                error = errno;
        return error;
}

static int run(void *userdata) {
        SpoolSync *y = userdata;

        pthread_mutex_lock(&y->lock);
        while (!y->is_stopping) {
                uint64_t from = y->from, to = y->to;
                int error;

                if (!y->is_busy) {
                        pthread_cond_wait(&y->changed, &y->lock);
                        continue;
                }
                pthread_mutex_unlock(&y->lock);
                error = sync_files(y, from, to);
                pthread_mutex_lock(&y->lock);
                y->is_busy = false;
                y->error = error ? error : y->error;
        }
        pthread_mutex_unlock(&y->lock);
        return 0;
}

int spool_sync_request(SpoolSync *y, Spool *s) {
        int error;

        pthread_mutex_lock(&y->lock);
        error = y->error;
        y->error = 0;
        if (!y->is_busy && s->unsynced != UINT64_MAX) {
                y->from = s->unsynced;
                y->to = s->next_segment - 1;
                y->is_busy = true;
                s->unsynced = UINT64_MAX;
                pthread_cond_signal(&y->changed);
        }
        pthread_mutex_unlock(&y->lock);
        return error;
}

static void sync_free(SpoolSync *y) {
        pthread_mutex_destroy(&y->lock);
        pthread_cond_destroy(&y->changed);
        close_fd(y->directory);
        close_fd(y->marks);
        free(y);
}

int spool_sync_start(const Spool *s, SpoolSync **ret) {
        SpoolSync *y = calloc(1, sizeof(*y));
        int r = 0;

        if (!y)
                return error_origin(-ENOMEM);
        pthread_mutex_init(&y->lock, NULL);
        pthread_cond_init(&y->changed, NULL);
        y->directory = fcntl(s->directory, F_DUPFD_CLOEXEC, 0);
        y->marks = s->marks >= 0 ? fcntl(s->marks, F_DUPFD_CLOEXEC, 0) : -1;
        y->owner = s->owner;
        if (y->directory < 0 || (s->marks >= 0 && y->marks < 0))
                r = error_origin(-errno);
        if (r == 0)
                r = thread_start(&y->thread, THREAD_ANY, "spool", -1, run, y);
        if (r < 0)
                sync_free(y);
        else
                *ret = y;
        return r;
}

/* If the disk does not answer, the thread and all it uses is left to the end of the process, which is near. */
void spool_sync_stop(SpoolSync *y) {
        if (!y)
                return;
        pthread_mutex_lock(&y->lock);
        y->is_stopping = true;
        pthread_cond_signal(&y->changed);
        pthread_mutex_unlock(&y->lock);
        if (!thread_join_within(&y->thread, 3 * NSEC_PER_SEC))
                return;
        (void)thread_join(&y->thread);
        sync_free(y);
}
