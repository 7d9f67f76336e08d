/* The folder of a task in /proc stays that of this task when it has ended: what is read there is ESRCH then, never another's. */
#include "daemon/kernel/task/own-task.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/fd-limit.h"
#include "daemon/kernel/host/whole-file.h"

int own_task_open(uint32_t tid, OwnTask *ret, Explanation *e) {
        char path[32];
        int fd;

        (void)snprintf(path, sizeof(path), "/proc/%u", tid);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || errno == ESRCH))
                return OWN_TASK_E_GONE;
        if (fd < 0)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "thread %u cannot be examined: %s", tid, strerror(errno));
        *ret = (OwnTask){ .fd = fd, .tid = tid };
        return 0;
}

/* The line behind "NAME:" is so many numbers, of this base, and all of them are `wanted`. */
static bool all_are(const char *status, const char *name, int n, int base, unsigned long wanted) {
        const char *line = strstr(status, name);
        char *end;

        if (!line)
                return false;
        line += strlen(name);
        for (; n > 0; n--, line = end)
                if (strtoul(line, &end, base) != wanted || end == line)
                        return false;
        return *line == '\n';
}

/* CAP_WAKE_ALARM is nobody's power over others, and systemd gives it to each session and to what runs for a user. */
static bool has_no_power(const char *status, const char *name) {
        const char *line = strstr(status, name);

        return line && (strtoull(line + strlen(name), NULL, 16) & ~(UINT64_C(1) << CAP_WAKE_ALARM)) == 0;
}

int own_task_check(OwnTask *t, uid_t uid, gid_t gid) {
        WITH_FD_RESERVE;
        _cleanup_free_ char *status = NULL;
        const char *tgid;
        struct stat st;
        size_t length;

        if (fstatat(t->fd, "status", &st, 0) < 0 || whole_file_read_at(t->fd, "status", &status, &length) < 0)
                return OWN_TASK_E_GONE;
        tgid = strstr(status, "\nTgid:");
        t->pid = tgid ? (uint32_t)strtoul(tgid + strlen("\nTgid:"), NULL, 10) : 0;
        /* the owner of what is in the folder is root where the task may not be dumped: proc(5) */
        if (st.st_uid != uid || !all_are(status, "\nUid:", 4, 10, uid) || !all_are(status, "\nGid:", 4, 10, gid) ||
            !has_no_power(status, "\nCapPrm:") || !has_no_power(status, "\nCapEff:"))
                return OWN_TASK_E_FOREIGN;
        return 0;
}

bool own_tasks_end_at_setuid(void) {
        WITH_FD_RESERVE;
        _cleanup_free_ char *text = NULL;
        size_t length;

        return whole_file_read("/proc/sys/fs/suid_dumpable", &text, &length) >= 0 && strtol(text, NULL, 10) != 1;
}
