/*
 * The lock is held for a system call or two, never while something is opened. What prlimit(1) sets while perfd runs is kept: the
 * reserve lies above whatever the soft limit is then, as far as the hard one permits.
 */
#include "daemon/base/fd-limit.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "daemon/base/error-trail.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these */
static bool is_kept;       /* fd_limit_init() took a reserve */
static unsigned n_entered;
static rlim_t n_added;     /* to the soft limit, while somebody is in the reserve */

int fd_limit_init(void) {
        struct rlimit l;
        int r = 0;

        pthread_mutex_lock(&lock);
        assert(!is_kept);
        if (getrlimit(RLIMIT_NOFILE, &l) < 0)
                r = error_origin(-errno);
        if (r == 0 && l.rlim_max > FD_RESERVE) {
                l.rlim_cur = l.rlim_max - FD_RESERVE;
                r = setrlimit(RLIMIT_NOFILE, &l) < 0 ? error_origin(-errno) : 0;
                is_kept = r == 0;
        }
        pthread_mutex_unlock(&lock);
        return r;
}

uint64_t fd_limit(void) {
        struct rlimit l = { 0 };
        uint64_t n;

        pthread_mutex_lock(&lock);
        (void)getrlimit(RLIMIT_NOFILE, &l); /* fails for a bad address only */
        n = l.rlim_cur - n_added + (is_kept ? FD_RESERVE : 0);
        pthread_mutex_unlock(&lock);
        return n < l.rlim_max ? n : l.rlim_max;
}

bool fd_is_of_reserve(int fd) {
        return is_kept && fd >= 0 && (uint64_t)fd >= fd_limit() - FD_RESERVE;
}

void fd_reserve_enter(void) {
        struct rlimit l;

        pthread_mutex_lock(&lock);
        if (is_kept && n_entered++ == 0 && getrlimit(RLIMIT_NOFILE, &l) == 0) {
                n_added = l.rlim_max - l.rlim_cur < FD_RESERVE ? l.rlim_max - l.rlim_cur : FD_RESERVE;
                l.rlim_cur += n_added;
                if (setrlimit(RLIMIT_NOFILE, &l) < 0) /* what is opened then may be refused, and says so */
                        n_added = 0;
        }
        pthread_mutex_unlock(&lock);
}

void fd_reserve_leave(void) {
        struct rlimit l;

        pthread_mutex_lock(&lock);
        if (is_kept && --n_entered == 0 && getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur >= n_added) {
                l.rlim_cur -= n_added;
                (void)setrlimit(RLIMIT_NOFILE, &l); /* lowering is always permitted */
                n_added = 0;
        }
        pthread_mutex_unlock(&lock);
}
