/*
 * NATS JetStream, by libnats. A message is stored when JetStream has answered it on the reply subject, which has its number: libnats
 * 3.4 tells only of errors of what it calls asynchronous publishing, and not which message was stored.
 *
 * Order is that of one TCP connection: libnats may not reconnect by itself, because what it would keep meanwhile would overtake what
 * was sent before and not stored. After each loss all that is not acknowledged is sent again, from the oldest one on; JetStream knows
 * what it has already by Nats-Msg-Id.
 *
 * This is the relay's side: it is told by a descriptor, and does what there is to do in dispatch().
 */
#include "client/relay/publish/nats.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/relay/publish/nats-sockets.h"
#include "daemon/base/cleanup.h"

#define BUSY_AT_MOST (5 * NSEC_PER_SEC) /* longer than libnats waits where it has a limit */
#define LOOK_EACH_SEC 2                 /* whether the thread is busy for too long */
#define ENDS_WITHIN (150 * NSEC_PER_MSEC) /* of each of three waits: with those of relay.c less than two seconds */

bool nats_is_built(void) {
        return true;
}

static void nats_publish(Publisher *p, Message *m) {
        Nats *n = (Nats *)p;

        pthread_mutex_lock(&n->lock);
        if (!n->queue.unsent) /* else the thread is at work, or waits for room in the window */
                pthread_cond_signal(&n->changed);
        message_queue_push(&n->queue, m);
        pthread_mutex_unlock(&n->lock);
}

/* What the thread waits for too long ends, with a reason that libnats says on the thread. */
static void end_wait(Nats *n) {
        unsigned port;

        pthread_mutex_lock(&n->lock);
        port = n->busy_since > 0 && clock_now(CLOCK_MONOTONIC) > n->busy_since + BUSY_AT_MOST ? n->port : 0;
        if (port > 0)
                n->busy_since = clock_now(CLOCK_MONOTONIC);
        pthread_mutex_unlock(&n->lock);
        if (port > 0)
                nats_sockets_shut(port);
}

static void nats_dispatch(Publisher *p) {
        Nats *n = (Nats *)p;
        bool has_notice, is_connected;
        char notice[sizeof(n->notice)];
        Message *stored;
        uint64_t rings;

        (void)!read(n->bell, &rings, sizeof(rings)); /* EAGAIN: nothing new, which is seen below */
        if (read(n->watch, &rings, sizeof(rings)) > 0)
                end_wait(n);
        pthread_mutex_lock(&n->lock);
        n->has_rung = false;
        stored = message_queue_take_stored(&n->queue);
        has_notice = n->has_notice;
        is_connected = n->is_connected;
        n->has_notice = false;
        memcpy(notice, n->notice, sizeof(notice));
        pthread_mutex_unlock(&n->lock);
        if (has_notice)
                n->callbacks.changed(n->callbacks.userdata, is_connected, notice);
        for (Message *m = stored, *next; m; m = next) {
                next = m->next;
                n->callbacks.stored(n->callbacks.userdata, m);
        }
}

static int nats_reload(Publisher *p, const PublishAccess *access) {
        PublishAccess copy = { .servers = STRINGS_NULL }, old;
        int r = publish_access_copy(access, &copy);
        Nats *n = (Nats *)p;

        if (r < 0)
                return r;
        pthread_mutex_lock(&n->lock);
        old = n->access;
        n->access = copy;
        n->is_other = true;
        pthread_cond_signal(&n->changed);
        pthread_mutex_unlock(&n->lock);
        publish_access_deinit(&old);
        return 0;
}

static void nats_free(Nats *n) {
        message_queue_deinit(&n->queue);
        refused_deinit(&n->refused);
        publish_access_deinit(&n->access);
        free(n->config.stream);
        pthread_mutex_destroy(&n->lock);
        pthread_cond_destroy(&n->changed);
        close_fd(n->watch);
        close_fd(n->bell);
        close_fd(n->publisher.fd);
        free(n);
}

/* libnats frees what is OpenSSL's, which frees it again at exit(3): then it has to be nothing. */
static void keep_compression_methods(void) {
        (void)SSL_COMP_get_compression_methods(); /* now, and not later */
        sk_SSL_COMP_free(SSL_COMP_set0_compression_methods(NULL));
}

/* At exit(3), before what else is called then: threads that still run use it. */
static void leave(int status, void *userdata) {
        (void)fflush(NULL);
        _exit(status);
}

/*
 * A thread that waits for a server longer than a moment is told by its socket not to. If even that does not help, as with a resolver that
 * does not answer, all that it uses is left as it is: the process is about to end. libnats and OpenSSL, too, free at exit(3) what threads
 * of libnats may be using then, which ends the process by SIGABRT.
 */
static void nats_close(Publisher *p) {
        Nats *n = (Nats *)p;
        unsigned port;

        pthread_mutex_lock(&n->lock);
        n->is_stopping = true;
        port = n->port;
        pthread_cond_signal(&n->changed);
        pthread_mutex_unlock(&n->lock);
        if (!thread_join_within(&n->thread, ENDS_WITHIN)) {
                nats_sockets_shut(port);
                if (!thread_join_within(&n->thread, ENDS_WITHIN)) {
                        (void)on_exit(leave, NULL);
                        return;
                }
        }
        (void)thread_join(&n->thread);
        keep_compression_methods();
        if (nats_CloseAndWait(ENDS_WITHIN / NSEC_PER_MSEC) == NATS_OK)
                nats_free(n);
        else
                (void)on_exit(leave, NULL); /* no memory: it is as without */
}

/* epoll(7) of both, which stay open as long as it. */
static int open_fds(Nats *n) {
        const struct itimerspec each = { .it_interval = { .tv_sec = LOOK_EACH_SEC }, .it_value = { .tv_sec = LOOK_EACH_SEC } };

        n->publisher.fd = epoll_create1(EPOLL_CLOEXEC);
        n->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        n->watch = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (n->publisher.fd < 0 || n->bell < 0 || n->watch < 0 || timerfd_settime(n->watch, 0, &each, NULL) < 0 ||
            epoll_ctl(n->publisher.fd, EPOLL_CTL_ADD, n->bell, &(struct epoll_event){ .events = EPOLLIN }) < 0 ||
            epoll_ctl(n->publisher.fd, EPOLL_CTL_ADD, n->watch, &(struct epoll_event){ .events = EPOLLIN }) < 0)
                return error_origin(-errno);
        return 0;
}

int nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret) {
        Nats *n = calloc(1, sizeof(*n));
        pthread_condattr_t monotonic;
        int r;

        if (!n)
                return error_origin(-ENOMEM);
        n->publisher = (Publisher){ .fd = -1, .publish = nats_publish, .dispatch = nats_dispatch, .reload = nats_reload, .close = nats_close };
        n->bell = n->watch = -1;
        n->config = (PublishConfig){ .stream = strdup(config->stream), .max_bytes = config->max_bytes, .max_age = config->max_age };
        n->callbacks = *callbacks;
        n->window = WINDOW_MESSAGES;
        message_queue_init(&n->queue);
        pthread_mutex_init(&n->lock, NULL);
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&n->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
        r = n->config.stream ? open_fds(n) : error_origin(-ENOMEM);
        if (r == 0)
                r = publish_access_copy(&config->access, &n->access);
        if (r == 0)
                r = thread_start(&n->thread, THREAD_ANY, "publish", -1, nats_run, n);
        if (r < 0)
                nats_free(n);
        else
                *ret = &n->publisher;
        return r;
}
