/*
 * What the configuration says of a socket that systemd has made: nothing of it is used, because a socket unit is what an
 * administrator looks at. That is said, and as a warning where the socket is another one than the configuration asks for.
 */
#include "daemon/supervisor/streams/sockets.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/array.h"
#include "daemon/base/log.h"

/* The file of a listening socket. False: it has none, or that is gone. */
static bool socket_file(int fd, struct sockaddr_un *address, struct stat *ret) {
        socklen_t size = sizeof(*address);

        memset(address, 0, sizeof(*address)); /* unix(7): a path of full length has no zero behind it */
        return getsockname(fd, (struct sockaddr *)address, &size) == 0 && address->sun_family == AF_UNIX &&
               address->sun_path[0] && strnlen(address->sun_path, sizeof(address->sun_path)) < sizeof(address->sun_path) &&
               stat(address->sun_path, ret) == 0;
}

/* By its name if it has one. */
static const char *group_text(gid_t gid, char number[LOG_NUMBER_SIZE]) {
        const struct group *g = getgrgid(gid);

        (void)log_number(number, gid);
        return g ? g->gr_name : number;
}

static const char *user_text(uid_t uid, char number[LOG_NUMBER_SIZE]) {
        const struct passwd *u = getpwuid(uid);

        return u ? u->pw_name : log_number(number, uid);
}

/* Its settings that the configuration has, and where the first of them stands. */
static size_t find_settings(const Config *c, bool control, char *text, size_t size, ConfigPlace *ret_at) {
        const char *const prefixes[] = { control ? "listen.control" : "listen.stream",
                                         control ? "access.control-" : "access.stream-" };
        size_t n = 0, used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n_config_keys; i++) {
                const Key *k = &config_keys[i];

                if (key_owner(k) != OWNER_CONFIG || !c->set_at[key_index(k)].path ||
                    (strncmp(k->pattern, prefixes[0], strlen(prefixes[0])) != 0 &&
                     strncmp(k->pattern, prefixes[1], strlen(prefixes[1])) != 0))
                        continue;
                if (n++ == 0)
                        *ret_at = c->set_at[key_index(k)];
                used += used < size ? (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", k->pattern) : 0;
        }
        return n;
}

bool sockets_advise(const Settings *s, const char *pattern, char *to, size_t size) {
        static const struct {
                const char *pattern, *line;
                bool is_control;
        } rows[] = {
                { "listen.control", "ListenStream=", true },     { "listen.stream", "ListenStream=", false },
                { "access.control-mode", "SocketMode=", true },  { "access.stream-mode", "SocketMode=", false },
                { "access.stream-group", "SocketGroup=", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const char *unit = rows[i].is_control ? "perfd-control.socket" : "perfd-stream.socket";

                if (strcmp(rows[i].pattern, pattern) != 0 || !(rows[i].is_control ? s->is_given_control : s->is_given_stream))
                        continue;
                (void)snprintf(to, size, "%s is ignored, also after a restart of perfd: systemd created this socket, and %s of its "
                               "unit says it; set that by `systemctl edit %s`, and `systemctl restart %s`",
                               pattern, rows[i].line, unit, unit);
                return true;
        }
        return false;
}

void streams_say_unused_access(const Streams *s, int fd, bool control) {
        const Config *c = s->settings->config;
        const mode_t mode = control ? c->control_mode : c->stream_mode;
        char settings[256], uid[LOG_NUMBER_SIZE], gid[LOG_NUMBER_SIZE], group[64];
        struct sockaddr_un address;
        struct stat st;
        bool is_other;
        ConfigPlace at = { .path = NULL };
        size_t n = find_settings(c, control, settings, sizeof(settings), &at);

        if (n == 0 || !socket_file(fd, &address, &st))
                return;
        (void)snprintf(group, sizeof(group), "%s", group_text(st.st_gid, gid));
        is_other = (st.st_mode & 0777) != mode || strcmp(address.sun_path, control ? c->control_path : c->stream_path) != 0 ||
                   (!control && mode & 070 && strcmp(group, c->stream_group) != 0 && strcmp(gid, c->stream_group) != 0);
        log_print(is_other ? LOG_WARNING : LOG_INFO, MESSAGE_SOCKET_ACCESS,
                  "%s:%u:%u: %s %s ignored: systemd created the socket %s, with mode %04o, user %s and group %s, as its socket "
                  "unit says",
                  at.path, at.line, at.column, settings, n > 1 ? "are" : "is", address.sun_path, (unsigned)(st.st_mode & 0777),
                  user_text(st.st_uid, uid), group);
}
