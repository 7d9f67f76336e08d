#include "client/relay/socket-set.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

/* What is left stays ready, behind what was told: epoll(7) takes turns. */
static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        SocketSet *set = userdata;
        int n = epoll_wait(set->fd, set->ready, SOCKETS_PER_TURN, 0);

        set->n_ready = n > 0 ? n : 0;
        for (int i = 0; i < set->n_ready; i++) {
                WatchedSocket *s = set->ready[i].data.ptr;

                if (s) /* else it was forgotten in this turn */
                        s->ready(s->userdata, set->ready[i].events);
        }
        set->n_ready = 0;
        return n < 0 && errno != EINTR ? -errno : 0;
}

int socket_set_open(SocketSet *set, sd_event *event) {
        int r;

        *set = SOCKET_SET_NULL;
        set->fd = epoll_create1(EPOLL_CLOEXEC);
        if (set->fd < 0)
                return -errno;
        r = sd_event_add_io(event, &set->source, set->fd, EPOLLIN, on_ready, set);
        if (r < 0)
                set->fd = close_fd(set->fd);
        return r < 0 ? r : 0;
}

void socket_set_close(SocketSet *set) {
        set->source = sd_event_source_disable_unref(set->source);
        set->fd = close_fd(set->fd);
}

int socket_set_watch(SocketSet *set, WatchedSocket *s, uint32_t events) {
        struct epoll_event e = { .events = events, .data.ptr = s };

        if (s->is_watched && s->events == events)
                return 0;
        if (epoll_ctl(set->fd, s->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e) < 0)
                return -errno;
        s->events = events;
        s->is_watched = true;
        return 0;
}

void socket_set_forget(SocketSet *set, WatchedSocket *s) {
        if (!s->is_watched)
                return;
        (void)epoll_ctl(set->fd, EPOLL_CTL_DEL, s->fd, NULL); /* it is there, and open */
        s->is_watched = false;
        for (int i = 0; i < set->n_ready; i++)
                if (set->ready[i].data.ptr == s)
                        set->ready[i].data.ptr = NULL;
}
