/*
 * A socket file is no lock: whether another daemon lives behind it is asked by connecting. So a path is removed while its
 * socket still listens: who starts meanwhile finds a daemon there, and does not make a socket that would be removed with it.
 *
 * Where there is no fd for a peer it is accepted with one of the reserve and told so, or served, if it is root on the control
 * socket. Only where that fails too, accepting stops for a moment, instead of spinning on a socket that stays readable. It also
 * stops, for a second at most, where root could only be served by ending what perfd is busy with: who waits in the queue of the
 * socket needs no fd; and on the stream socket while too many sockets wait to be closed (peer-socket.h).
 */
#include "daemon/control/listener.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/base/peer-socket.h"
#include "daemon/base/thread.h"
#include "daemon/control/predecessor.h"
#include "daemon/control/socket-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG SOMAXCONN
#define PAUSE_USEC 200000 /* without a free fd */
#define BUSY_USEC 20000    /* without a free fd, but with connections that will be answered */
#define WAITS_MOST NSEC_PER_SEC
#define ACCEPTS_PER_WAKEUP 16
#define IDLE_AFTER NSEC_PER_SEC

void control_init(Control *c, sd_event *event, ControlLimits limits, ControlHandler handler, void *userdata) {
        *c = (Control){ .event = sd_event_ref(event), .limits = limits, .handler = handler, .userdata = userdata,
                        .idle_after = IDLE_AFTER };
}

void control_deinit(Control *c) {
        while (c->connections)
                connection_free(c->connections);
        while (c->listeners)
                listener_free(c->listeners);
        c->event = sd_event_unref(c->event);
}

/* Only what we made there: somebody may have removed it, and started another daemon on the same path. */
static void listener_remove_path(const Listener *l) {
        struct stat st;

        if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode)
                (void)unlink(l->path); /* what is left is replaced by the next one that starts */
}

Listener *listener_free(Listener *l) {
        for (Listener **p = &l->control->listeners; *p; p = &(*p)->next)
                if (*p == l) {
                        *p = l->next;
                        break;
                }
        precedence_deinit(l->control, &l->precedence);
        sd_event_source_disable_unref(l->source);
        sd_event_source_disable_unref(l->pause);
        listener_remove_path(l);
        close_fd(l->fd);
        free(l->path);
        free(l);
        return NULL;
}

static int listener_pause(Listener *l, uint64_t usec);

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Listener *l = userdata;

        if (sd_event_source_set_enabled(l->source, SD_EVENT_ON) >= 0)
                return 0;
        return listener_pause(l, PAUSE_USEC); /* epoll_ctl(2) had no memory */
}

static int listener_pause(Listener *l, uint64_t usec) {
        int r = error_origin(sd_event_source_set_enabled(l->source, SD_EVENT_OFF));

        if (r >= 0)
                r = error_origin(sd_event_source_set_time_relative(l->pause, usec));
        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(l->pause, SD_EVENT_ONESHOT));
        return r < 0 ? r : 0;
}

void peer_tell(int fd, Perfd__V1__Status status, const char *reason, const char *text) {
        _cleanup_free_ uint8_t *frame = NULL;
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        size_t length;

        response.status = status;
        response.message = (char *)text;
        response.reason = (char *)reason;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &response;
        if (frame_pack(&m, &frame, &length) == 0)
                (void)send(fd, frame, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void listener_take(Listener *l, int connection_fd) {
        _cleanup_(peer_socket_closep) int fd = connection_fd;
        Explanation e = EXPLANATION_NULL;
        struct ucred cred;
        socklen_t size = sizeof(cred);
        Peer peer;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
                return; /* only a socket that is none of ours has none */
        if (cred.uid == (uid_t)-1) /* nor has the peer of one that is not of AF_UNIX: it is nobody, who may nothing */
                return;
        peer = (Peer){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid, .may_change = l->may_change };
        (void)snprintf(peer.text, sizeof(peer.text), "pid %d, uid %u", (int)cred.pid, (unsigned)cred.uid);
        if (control_admit(l->control, &peer, fd_is_of_reserve(fd), &e) == 0)
                connection_new(l->control, TAKE_FD(fd), &peer);
        else
                peer_tell(fd, PERFD__V1__STATUS__STATUS_EXHAUSTED, e.reason, e.text);
}

/* With an fd of the reserve, if there is no other. Of that a part is for others than peers (admission.c). */
static int listener_accept(Listener *l) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        for (bool again = true; fd < 0 && errno == EMFILE && again;) {
                {
                        WITH_FD_RESERVE;

                        fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                }
                again = fd < 0 && errno == EMFILE && l->may_change && control_end_idlest_changer(l->control);
                errno = again ? EMFILE : errno;
        }
        return fd;
}

/* Once for WAITS_MOST: what is still busy then may be so for long, and who waits behind it must not. */
static bool listener_waits(Listener *l) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        if (!l->may_change || !control_is_busy(l->control)) {
                l->waits_since = 0;
                return false;
        }
        if (l->waits_since == 0)
                l->waits_since = now;
        return now - l->waits_since < WAITS_MOST;
}

static int on_connect(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata) {
        Listener *l = userdata;
        int r = precedence_count(l->control, &l->precedence, source);

        if (r < 0)
                return r;
        for (int i = 0; i < ACCEPTS_PER_WAKEUP; i++) {
                int fd;

                if (listener_waits(l) || (!l->may_change && peer_socket_is_behind()))
                        return listener_pause(l, BUSY_USEC);
                fd = listener_accept(l);
                if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
                        return 0;
                if (fd < 0) {
                        if (!l->is_paused) /* once, until one is accepted again */
                                log_print(LOG_WARNING, MESSAGE_NO_CONNECTIONS, "accepting connections pauses: accept4(2): %m");
                        l->is_paused = true;
                        return listener_pause(l, PAUSE_USEC);
                }
                l->is_paused = false;
                listener_take(l, fd);
        }
        return 0;
}

int control_listen_fd(Control *c, int fd, bool may_change) {
        Listener *l = calloc(1, sizeof(*l));
        int r;

        thread_assert(THREAD_MAIN);
        if (!l) {
                close_fd(fd);
                return error_origin(-ENOMEM);
        }
        *l = (Listener){ .control = c, .fd = fd, .may_change = may_change, .next = c->listeners };
        c->listeners = l;
        r = peer_socket_refuse_files(fd);
        /* systemd's sockets block, and on_connect() accepts until there is nobody left */
        if (r >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                r = error_origin(-errno);
        if (r >= 0)
                r = error_origin(sd_event_add_io(c->event, &l->source, fd, EPOLLIN, on_connect, l));
        if (r >= 0)
                r = error_origin(sd_event_source_set_exit_on_failure(l->source, true));
        if (r >= 0 && may_change)
                r = precedence_set(&l->precedence, l->source);
        if (r >= 0)
                r = error_origin(sd_event_add_time(c->event, &l->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, l));
        if (r >= 0)
                r = error_origin(sd_event_source_set_enabled(l->pause, SD_EVENT_OFF));
        if (r >= 0)
                r = error_origin(sd_event_source_set_exit_on_failure(l->pause, true));
        if (r < 0)
                listener_free(l);
        return r < 0 ? r : 0;
}

/* Whether somebody listens there, else errno says why not; *ret: negative, or a socket. */
static bool try_listener(const struct sockaddr_un *address, int *ret) {
        *ret = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* unix(7), EAGAIN: so many wait for it already that it is there, if busy */
        return *ret >= 0 && (connect(*ret, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN);
}

/* Removes the socket of a daemon that is dead; everything else that is there is refused. */
static int make_way(const char *path, const struct sockaddr_un *address, Explanation *e) {
        _cleanup_close_ int fd = -1;
        bool is_ending = false, is_there;
        struct stat st;

        if (lstat(path, &st) < 0)
                return 0; /* bind(2) says what else is wrong */
        if (!S_ISSOCK(st.st_mode))
                return refuse(e, REFUSED_EXISTS, "exists", "%s exists and is not a socket: remove it, or set `listen` to another "
                        "path", path);
        is_there = try_listener(address, &fd);
        if (fd >= 0 && is_there && predecessor_wait(fd, path, &is_ending)) {
                fd = close_fd(fd);
                is_there = try_listener(address, &fd);
        }
        if (fd < 0)
                return error_origin(-errno);
        if (is_there && is_ending)
                return refuse(e, REFUSED_EXISTS, "exists", "another daemon still listens on %s, which was killed and has not ended "
                        "yet: the kernel closes its events; try again", path);
        if (is_there)
                return refuse(e, REFUSED_EXISTS, "exists", "another daemon already listens on %s: stop it, or set `listen`, or "
                        "--runtime-directory, to another path",
                              path);
        if (errno != ECONNREFUSED && errno != ENOENT)
                return refuse(e, REFUSED_DENIED, "no-permission", "cannot determine whether a daemon listens on %s: %m",
                              path);
        if (unlink(path) < 0 && errno != ENOENT)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s is a socket that no daemon uses, and cannot be removed: "
                        "%m", path);
        return 0;
}

/* By its name, which may be digits too, or its number. */
static bool group_find(const char *group, gid_t *ret) {
        const struct group *g = getgrnam(group);
        char *end;

        if (g) {
                *ret = g->gr_gid;
                return true;
        }
        *ret = (gid_t)strtoull(group, &end, 10); /* config/value-text.c: digits are at most 4294967294 */
        return !*end && strspn(group, "0123456789") > 0;
}

/* Without what the group would have. */
static const char *whom_alone(mode_t mode) {
        return mode & 07 ? "all users, but not by a group" : geteuid() == 0 ? "root alone" : "perfd's own user alone";
}

/* Of a socket by an O_PATH fd, so that it is this one whatever its path means by now. */
static int set_access(int fd, const char *path, mode_t mode, const char *group, Explanation *e) {
        bool is_wanted = group && ((mode >> 3) & ~mode & 07); /* it has more than all others */
        char file[32];
        gid_t gid = 0;

        if (is_wanted && !group_find(group, &gid)) { /* on a machine where nobody has installed perfd: less access, never more */
                log_print(LOG_WARNING, MESSAGE_SOCKET_ACCESS,
                          "%s: access is limited to %s: the group %s does not exist; create it by `groupadd --system %s` and "
                          "restart perfd",
                          path, whom_alone(mode), group, group);
                is_wanted = false;
                mode &= ~(mode_t)070;
        }
        if (is_wanted && fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) < 0) {
                if (errno != EPERM)
                        return refuse(e, REFUSED_DENIED, "no-permission", "%s cannot be given to the group %s: %m", path, group);
                log_print(
                        LOG_WARNING, MESSAGE_SOCKET_ACCESS,
                        "%s is for %s: it cannot be given to the group %s without CAP_CHOWN; give perfd that, or let it run in the "
                        "group (Group=, --user UID:GID), for the next start of perfd",
                        path, whom_alone(mode), group);
                mode &= ~(mode_t)070;
        }
        (void)snprintf(file, sizeof(file), "/proc/self/fd/%d", fd); /* fchmod(2) takes no such fd */
        if (chmod(file, mode) < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s cannot get the mode %04o: %m", path, mode);
        return 0;
}

/* The socket that was just made. */
static int open_file(const char *path, int *ret_fd, struct stat *ret, Explanation *e) {
        _cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || fstat(fd, ret) < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s, which was just created, cannot be opened: %m", path);
        if (!S_ISSOCK(ret->st_mode))
                return refuse(e, REFUSED_DENIED, "no-permission", "%s was replaced while it was created", path);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int control_listen(Control *c, const char *path, mode_t mode, const char *group, bool may_change, Explanation *e) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -1, file = -1;
        struct stat st;
        mode_t before;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return refuse(e, REFUSED_INVALID, "bad-config", "%s is longer than the %zu bytes of a socket's path", path,
                              sizeof(address.sun_path) - 1);
        strcpy(address.sun_path, path);
        r = socket_folder_check(path, e);
        if (r == 0)
                r = make_way(path, &address, e);
        if (r != 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return error_origin(-errno);
        before = umask(0777); /* closed to all until set_access() */
        r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? error_origin(-errno) : 0;
        umask(before);
        if (r < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s cannot be created: %s; does its directory exist?", path,
                              strerror(-r));
        r = open_file(path, &file, &st, e);
        if (r == 0)
                r = set_access(file, path, mode, group, e);
        if (r == 0 && listen(fd, BACKLOG) < 0)
                r = refuse(e, REFUSED_DENIED, "no-permission", "cannot listen on %s: %m", path);
        if (r == 0)
                r = control_listen_fd(c, TAKE_FD(fd), may_change);
        if (r == 0) {
                c->listeners->device = st.st_dev;
                c->listeners->inode = st.st_ino;
                c->listeners->path = strdup(path);
                if (!c->listeners->path)
                        return error_origin(-ENOMEM);
        } else
                (void)unlink(path); /* in this directory nobody else could replace it */
        return r;
}
