#include "daemon/base/peer-socket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/thread.h"

#ifndef SO_PASSRIGHTS /* Linux 6.16; a connection has it from its listener */
#define SO_PASSRIGHTS 83
#endif

#define TICK (struct timespec){ .tv_nsec = 1000000 }
#ifndef sigev_notify_thread_id /* glibc 2.38 */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Never moved: a thread that is left at the end still looks at it. */
static struct {
        Thread thread;
        timer_t tick;
        pthread_mutex_t lock; /* of the rest */
        pthread_cond_t news;
        int *fds;
        size_t n, capacity;
        bool stops;
} closing = { .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER };

/* -1: the end. */
static int next_to_close(void) {
        int fd = -1;

        pthread_mutex_lock(&closing.lock);
        while (closing.n == 0 && !closing.stops)
                pthread_cond_wait(&closing.news, &closing.lock);
        if (closing.n > 0)
                fd = closing.fds[--closing.n];
        pthread_mutex_unlock(&closing.lock);
        return fd;
}

static void on_tick(int signal) {
}

/* A file does not linger for a thread that a signal waits for, and the signal waits until the last file has ended. */
static int closing_run(void *userdata) {
        const struct itimerspec on = { .it_value = TICK, .it_interval = TICK }, off = { .it_value = { .tv_nsec = 0 } };
        sigset_t ticks;
        int fd;

        sigemptyset(&ticks);
        sigaddset(&ticks, SIGRTMIN);
        pthread_sigmask(SIG_UNBLOCK, &ticks, NULL);
        while ((fd = next_to_close()) >= 0) {
                (void)timer_settime(closing.tick, 0, &on, NULL); /* fails only for times that are none */
                close_fd(fd);
                (void)timer_settime(closing.tick, 0, &off, NULL);
        }
        return 0;
}

/* False: it does not end now. */
static bool closing_end(void) {
        pthread_mutex_lock(&closing.lock);
        closing.stops = true;
        pthread_mutex_unlock(&closing.lock);
        pthread_cond_signal(&closing.news);
        return thread_join_within(&closing.thread, NSEC_PER_SEC);
}

static int start_closing(void) {
        struct sigaction action = { .sa_handler = on_tick };
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
        int r;

        if (sigaction(SIGRTMIN, &action, NULL) < 0)
                return error_origin(-errno);
        closing.stops = false;
        r = thread_start(&closing.thread, THREAD_SOCKET_CLOSER, "socket-closer", -1, closing_run, NULL);
        if (r < 0)
                return r;
        event.sigev_notify_thread_id = closing.thread.tid;
        if (timer_create(CLOCK_MONOTONIC, &event, &closing.tick) < 0) {
                r = error_origin(-errno);
                (void)closing_end();
        }
        return r;
}

int peer_socket_refuse_files(int listening_fd) {
        thread_assert(THREAD_MAIN);
        if (closing.thread.started || setsockopt(listening_fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int)) == 0)
                return 0;
        return start_closing();
}

/*
 * A look without room for files neither installs them nor ends one, and says that there are some. It ends behind the message that
 * has them, so what it saw before can be read without meeting any, if not a byte more is read.
 */
static ssize_t look(int fd, void *to, size_t size) {
        struct iovec where = { .iov_base = to, .iov_len = size };
        struct msghdr message = { .msg_iov = &where, .msg_iovlen = 1 };
        ssize_t n = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

        if (n < 0 || !(message.msg_flags & MSG_CTRUNC))
                return n;
        errno = EBADMSG;
        return -1;
}

ssize_t peer_socket_receive(int fd, void *to, size_t size) {
        ssize_t n;

        if (!closing.thread.started)
                return recv(fd, to, size, MSG_DONTWAIT);
        n = look(fd, to, size);
        return n > 0 ? recv(fd, to, (size_t)n, MSG_DONTWAIT) : n;
}

/* False: there is no memory. */
static bool make_room(void) {
        size_t capacity = closing.capacity > 0 ? closing.capacity * 2 : PEER_SOCKETS_MOST;
        int *more;

        if (closing.n < closing.capacity)
                return true;
        more = realloc(closing.fds, capacity * sizeof(*more));
        if (!more)
                return false;
        closing.fds = more;
        closing.capacity = capacity;
        return true;
}

int peer_socket_close(int fd) {
        bool has_room;
        int n_unread;

        if (fd < 0 || !closing.thread.started)
                return close_fd(fd);
        (void)shutdown(fd, SHUT_RDWR); /* ENOTCONN, if the peer has gone; nothing comes behind it */
        if (ioctl(fd, FIONREAD, &n_unread) == 0 && n_unread == 0)
                return close_fd(fd); /* files come with bytes */
        pthread_mutex_lock(&closing.lock);
        has_room = make_room();
        if (has_room)
                closing.fds[closing.n++] = fd;
        pthread_mutex_unlock(&closing.lock);
        if (!has_room)
                return close_fd(fd);
        pthread_cond_signal(&closing.news);
        return -1;
}

bool peer_socket_is_behind(void) {
        bool is_behind;

        if (!closing.thread.started)
                return false;
        pthread_mutex_lock(&closing.lock);
        is_behind = closing.n >= PEER_SOCKETS_MOST;
        pthread_mutex_unlock(&closing.lock);
        return is_behind;
}

void peer_socket_stop(void) {
        if (!closing.thread.started || !closing_end())
                return;
        (void)timer_delete(closing.tick);
        free(closing.fds);
        closing.fds = NULL;
        closing.capacity = 0;
}
