/*
 * Neither is waited for what the kernel does last, nor for a trigger of PSI, which systemd's services may not write without
 * CAP_SYS_RESOURCE: whoever grows asks before how much is left. That limits are reached for other reasons the kernel says by
 * memory.events.
 */
#include "daemon/kernel/cgroup/memory-limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/mounts.h"
#include "daemon/kernel/host/whole-file.h"

#define KEPT_FREE_MAX ((uint64_t)128 << 20)
#define LEVELS_MAX 32

void memory_limits_deinit(MemoryLimits *m) {
        for (size_t i = 0; i < m->n; i++)
                free(m->folders[i]);
        free(m->folders);
        free(m->root);
        *m = MEMORY_LIMITS_NULL;
}

/* NULL: it cannot be read, which is taken as that there is none. */
static char *read_text(const char *folder, const char *name) {
        _cleanup_free_ char *path = NULL;
        char *text = NULL;
        size_t length;

        if (asprintf(&path, "%s/%s", folder, name) < 0) {
                path = NULL;
                return NULL;
        }
        return whole_file_read(path, &text, &length) == 0 ? text : NULL;
}

/* A number alone; UINT64_MAX: there is none, or it is "max". */
static uint64_t read_number(const char *folder, const char *name) {
        _cleanup_free_ char *text = read_text(folder, name);
        unsigned long long n;

        return text && sscanf(text, "%llu", &n) == 1 ? n : UINT64_MAX;
}

/* The value of a line "NAME NUMBER" or "NAME: NUMBER kB"; 0: there is none. */
static uint64_t find_value(const char *text, const char *name) {
        const size_t n = strlen(name);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                unsigned long long value;

                line += *line == '\n';
                if (strncmp(line, name, n) == 0 && sscanf(line + n, "%*[: \t]%llu", &value) == 1)
                        return value;
        }
        return 0;
}

/* "9:memory:/a/b" of proc(5), v2: "0::/a/b". Into `text`; NULL: it is in none. */
static char *find_own(char *text, bool is_v1) {
        char *rest = text, *line;

        while ((line = strsep(&rest, "\n"))) {
                char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL, *name;

                if (!path)
                        continue;
                *path++ = '\0';
                names++;
                if (!is_v1 && !*names)
                        return path;
                while (is_v1 && (name = strsep(&names, ",")))
                        if (strcmp(name, "memory") == 0)
                                return path;
        }
        return NULL;
}

/* The folder and those above it, up to where the hierarchy is mounted. */
static int add_levels(MemoryLimits *m, const CgroupMount *mount, const char *own) {
        const size_t n_root = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
        _cleanup_free_ char *path = NULL;
        size_t least;

        if (strncmp(own, mount->root, n_root) == 0 && (own[n_root] == '/' || !own[n_root]))
                own += n_root;
        else
                own = ""; /* of another namespace: what is mounted is what can be seen */
        if (asprintf(&path, "%s%s%s", m->root, mount->path, strcmp(own, "/") == 0 ? "" : own) < 0) {
                path = NULL;
                return error_origin(-ENOMEM);
        }
        least = strlen(m->root) + strlen(mount->path);
        m->folders = calloc(LEVELS_MAX, sizeof(*m->folders));
        if (!m->folders)
                return error_origin(-ENOMEM);
        while (m->n < LEVELS_MAX) {
                m->folders[m->n] = strdup(path);
                if (!m->folders[m->n])
                        return error_origin(-ENOMEM);
                m->n++;
                if (strlen(path) <= least)
                        break;
                *strrchr(path, '/') = '\0';
        }
        return 0;
}

static int find_levels(MemoryLimits *m, const CgroupMount *mounts, size_t n) {
        _cleanup_free_ char *text = read_text(m->root, "proc/self/cgroup"), *own = NULL;

        for (size_t i = 0; text && i < n; i++) { /* a controller is in one hierarchy: that of v1, if there is one for it */
                if (mounts[i].is_covered || !mounts[i].has_memory)
                        continue;
                own = find_own(text, true);
                m->is_v1 = true;
                own = own ? strdup(own) : NULL;
                return own ? add_levels(m, &mounts[i], own) : 0;
        }
        for (size_t i = 0; text && i < n; i++) {
                if (mounts[i].is_covered || !mounts[i].is_v2)
                        continue;
                own = find_own(text, false);
                own = own ? strdup(own) : NULL;
                return own ? add_levels(m, &mounts[i], own) : 0;
        }
        return 0;
}

int memory_limits_find(const char *root, MemoryLimits *ret) {
        _cleanup_(memory_limits_deinit) MemoryLimits m = { .root = strdup(root) };
        _cleanup_free_ char *text = NULL;
        CgroupMount *mounts = NULL;
        size_t n = 0;
        int r;

        thread_assert(THREAD_MAIN);
        if (!m.root)
                return error_origin(-ENOMEM);
        text = read_text(root, "proc/self/mountinfo");
        r = text ? cgroup_mounts_parse(text, &mounts, &n, NULL) : 0;
        if (r == 0)
                r = find_levels(&m, mounts, n);
        cgroup_mounts_free(mounts, n);
        if (r < 0)
                return r;
        *ret = m;
        m = MEMORY_LIMITS_NULL;
        return 0;
}

/* What a limit leaves, when some of it is kept free. */
static int64_t room_below(uint64_t limit, uint64_t used) {
        const uint64_t kept_free = limit / 8 < KEPT_FREE_MAX ? limit / 8 : KEPT_FREE_MAX;

        return (int64_t)(limit - kept_free) - (int64_t)used;
}

static int64_t lesser(int64_t a, int64_t b) {
        return a < b ? a : b;
}

static int64_t room_of_host(const MemoryLimits *m) {
        _cleanup_free_ char *text = read_text(m->root, "proc/meminfo");
        const uint64_t total = text ? find_value(text, "MemTotal") << 10 : 0;
        const uint64_t available = text ? find_value(text, "MemAvailable") << 10 : 0;

        return total > 0 && available <= total ? room_below(total, total - available) : INT64_MAX;
}

/* A limit, and what is used of it. False: there is none. */
typedef struct Used {
        uint64_t limit, used;
} Used;

/* What can still be mapped: behind RLIMIT_AS, and where Linux promises no more than it has, any allocation fails, also perfd's own. */
static bool find_addresses(const MemoryLimits *m, Used *ret) {
        _cleanup_free_ char *limits = read_text(m->root, "proc/self/limits"), *status = read_text(m->root, "proc/self/status");
        const uint64_t limit = limits ? find_value(limits, "Max address space") : 0;
        const uint64_t mapped = status ? find_value(status, "VmSize") << 10 : 0;

        *ret = (Used){ .limit = limit, .used = mapped };
        return limit > 0 && limit < INT64_MAX / 2 && mapped > 0;
}

static bool find_promises(const MemoryLimits *m, Used *ret) {
        _cleanup_free_ char *folder = NULL, *text = NULL;
        uint64_t limit;

        if (asprintf(&folder, "%s/proc/sys/vm", m->root) < 0) {
                folder = NULL;
                return false;
        }
        if (read_number(folder, "overcommit_memory") != 2) /* OVERCOMMIT_NEVER */
                return false;
        text = read_text(m->root, "proc/meminfo");
        limit = text ? find_value(text, "CommitLimit") << 10 : 0;
        *ret = (Used){ .limit = limit, .used = limit > 0 ? find_value(text, "Committed_AS") << 10 : 0 };
        return limit > 0;
}

static int64_t room_of_level(const char *folder, bool is_v1) {
        uint64_t limit = read_number(folder, is_v1 ? "memory.limit_in_bytes" : "memory.max");
        const uint64_t high = is_v1 ? UINT64_MAX : read_number(folder, "memory.high");
        _cleanup_free_ char *text = NULL;
        uint64_t used, cache;

        limit = high < limit ? high : limit;
        if (limit >= INT64_MAX / 2)
                return INT64_MAX; /* what v1 says if there is none is a little less than all bits */
        used = read_number(folder, is_v1 ? "memory.usage_in_bytes" : "memory.current");
        text = read_text(folder, "memory.stat");
        if (used == UINT64_MAX)
                return INT64_MAX;
        cache = !text ? 0 : is_v1 ? find_value(text, "total_inactive_file") + find_value(text, "total_active_file")
                                  : find_value(text, "inactive_file") + find_value(text, "active_file");
        return room_below(limit, cache < used ? used - cache : 0);
}

int64_t memory_limits_room(const MemoryLimits *m) {
        WITH_FD_RESERVE; /* or clients that take all fds would take the limits away too */
        int64_t room = room_of_host(m);
        Used u;

        if (find_addresses(m, &u))
                room = lesser(room, room_below(u.limit, u.used));
        if (find_promises(m, &u))
                room = lesser(room, room_below(u.limit, u.used));
        for (size_t i = 0; i < m->n; i++)
                room = lesser(room, room_of_level(m->folders[i], m->is_v1));
        return room;
}

int64_t memory_limits_mappable(const MemoryLimits *m) {
        WITH_FD_RESERVE;
        int64_t left = INT64_MAX;
        Used u;

        if (find_addresses(m, &u))
                left = (int64_t)u.limit - (int64_t)u.used;
        if (find_promises(m, &u))
                left = lesser(left, (int64_t)u.limit - (int64_t)u.used);
        return left;
}

int memory_limits_watch(const MemoryLimits *m) {
        _cleanup_free_ char *path = NULL;

        if (m->n == 0 || m->is_v1)
                return -1;
        if (asprintf(&path, "%s/memory.events", m->folders[0]) < 0) {
                path = NULL;
                return -1;
        }
        return open(path, O_RDONLY | O_CLOEXEC);
}
