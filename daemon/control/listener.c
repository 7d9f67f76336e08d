/*
 * A socket file is no lock: whether another daemon lives behind it is asked by connecting. Accepting stops for a
 * moment when there is no fd for the peer, instead of spinning on a socket that stays readable.
 */
#include "daemon/control/listener.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "daemon/base/log.h"

#define BACKLOG 128
#define PAUSE_USEC 200000 /* without a free fd */
#define ACCEPTS_PER_WAKEUP 16

void control_init(Control *c, sd_event *event, ControlLimits limits, ControlHandler handler, void *userdata) {
        *c = (Control){ .event = sd_event_ref(event), .limits = limits, .handler = handler, .userdata = userdata };
}

void control_deinit(Control *c) {
        while (c->connections)
                connection_free(c->connections);
        while (c->listeners)
                listener_free(c->listeners);
        c->event = sd_event_unref(c->event);
}

Listener *listener_free(Listener *l) {
        for (Listener **p = &l->control->listeners; *p; p = &(*p)->next)
                if (*p == l) {
                        *p = l->next;
                        break;
                }
        sd_event_source_disable_unref(l->source);
        sd_event_source_disable_unref(l->pause);
        close_fd(l->fd);
        if (l->path)
                (void)unlink(l->path); /* somebody may have removed it before us */
        free(l->path);
        free(l);
        return NULL;
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Listener *l = userdata;

        l->pause = sd_event_source_disable_unref(l->pause);
        return sd_event_source_set_enabled(l->source, SD_EVENT_ON);
}

static int listener_pause(Listener *l) {
        int r = sd_event_source_set_enabled(l->source, SD_EVENT_OFF);

        if (r < 0)
                return r;
        return sd_event_add_time_relative(l->control->event, &l->pause, CLOCK_MONOTONIC, PAUSE_USEC, 0, on_pause_over, l);
}

/* The peer is told why, if it can take that much at once. */
static void refuse_peer(int fd, const char *what, unsigned limit) {
        _cleanup_free_ uint8_t *frame = NULL;
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        char text[128];
        size_t length;

        (void)snprintf(text, sizeof(text), "perfd has %u connections %s already, its limit; close some", limit, what);
        response.status = PERFD__V1__STATUS__STATUS_EXHAUSTED;
        response.message = text;
        response.reason = (char *)"too-many-connections";
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &response;
        if (frame_pack(&m, &frame, &length) == 0)
                (void)send(fd, frame, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int listener_take(Listener *l, int connection_fd) {
        _cleanup_close_ int fd = connection_fd;
        Control *c = l->control;
        struct ucred cred;
        socklen_t size = sizeof(cred);
        Peer peer;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
                return 0; /* only a socket that is none of ours has none */
        if (c->n_connections >= c->limits.connections) {
                refuse_peer(fd, "in all", c->limits.connections);
                return 0;
        }
        if (connection_count_uid(c, cred.uid) >= c->limits.connections_per_uid) {
                refuse_peer(fd, "of your uid", c->limits.connections_per_uid);
                return 0;
        }
        peer = (Peer){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid, .may_change = l->may_change };
        (void)snprintf(peer.text, sizeof(peer.text), "pid %d, uid %u", (int)cred.pid, (unsigned)cred.uid);
        return connection_new(c, TAKE_FD(fd), &peer);
}

static int on_connect(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata) {
        Listener *l = userdata;

        for (int i = 0; i < ACCEPTS_PER_WAKEUP; i++) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;

                if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
                        return 0;
                if (fd < 0) {
                        log_print(LOG_WARNING, "no new connections for a moment: accept4(2) says %m");
                        return listener_pause(l);
                }
                r = listener_take(l, fd);
                if (r < 0)
                        return r;
        }
        return 0;
}

int control_listen_fd(Control *c, int fd, bool may_change) {
        Listener *l = calloc(1, sizeof(*l));
        int r;

        thread_assert(THREAD_MAIN);
        if (!l) {
                close_fd(fd);
                return -ENOMEM;
        }
        *l = (Listener){ .control = c, .fd = fd, .may_change = may_change, .next = c->listeners };
        c->listeners = l;
        /* systemd's sockets block, and on_connect() accepts until there is nobody left */
        r = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno
                                               : sd_event_add_io(c->event, &l->source, fd, EPOLLIN, on_connect, l);
        if (r >= 0)
                r = sd_event_source_set_exit_on_failure(l->source, true);
        if (r < 0)
                listener_free(l);
        return r < 0 ? r : 0;
}

/* Removes the socket of a daemon that is dead; everything else that is there is refused. */
static int make_way(const char *path, const struct sockaddr_un *address, Explanation *e) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (lstat(path, &st) < 0)
                return 0; /* bind(2) says what else is wrong */
        if (!S_ISSOCK(st.st_mode))
                return refuse(e, REFUSED_EXISTS, "exists", "%s is no socket, and in the way: remove it, or set listen", path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* unix(7), EAGAIN: so many wait for it already that it is there, if busy */
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
                return refuse(e, REFUSED_EXISTS, "exists", "another daemon listens on %s already: stop it, or set listen",
                              path);
        if (errno != ECONNREFUSED && errno != ENOENT)
                return refuse(e, REFUSED_DENIED, "no-permission", "whether a daemon listens on %s can not be found out: %m",
                              path);
        if (unlink(path) < 0 && errno != ENOENT)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s is in the way and can not be removed: %m", path);
        return 0;
}

static int set_access(const char *path, mode_t mode, const char *group, Explanation *e) {
        struct group *g = NULL;

        if (group && (mode & 070)) {
                g = getgrnam(group);
                if (!g)
                        return refuse(e, REFUSED_NOT_FOUND, "bad-config",
                                      "%s is to belong to the group %s, which does not exist: make it "
                                      "(systemd-sysusers), or set access.stream-group", path, group);
        }
        if (g && chown(path, (uid_t)-1, g->gr_gid) < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s can not be given to the group %s: %m", path, group);
        if (chmod(path, mode) < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s can not get the mode %04o: %m", path, mode);
        return 0;
}

int control_listen(Control *c, const char *path, mode_t mode, const char *group, bool may_change, Explanation *e) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -1;
        mode_t before;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return refuse(e, REFUSED_INVALID, "bad-config", "%s is longer than the %zu bytes of a socket's path", path,
                              sizeof(address.sun_path) - 1);
        strcpy(address.sun_path, path);
        r = make_way(path, &address, e);
        if (r != 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        before = umask(0777); /* closed to all until set_access() */
        r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
        umask(before);
        if (r < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s can not be made: %s; does its folder exist?", path,
                              strerror(-r));
        r = set_access(path, mode, group, e);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = refuse(e, REFUSED_DENIED, "no-permission", "%s can not be listened on: %m", path);
        if (r == 0)
                r = control_listen_fd(c, TAKE_FD(fd), may_change);
        if (r == 0) {
                c->listeners->path = strdup(path);
                if (!c->listeners->path)
                        return -ENOMEM;
        } else
                (void)unlink(path);
        return r;
}
