/*
 * tracefs outlives its users: what a daemon that was killed has defined stays there. So the group of a definition says
 * who made it, in a way that the next process with the same pid does not fit. What is removed at start is only what is
 * proven to be a dead perfd's; in doubt it stays, because it may be a living one's in another container.
 */
#include "daemon/kernel/probe/names.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/probe/dynamic.h"
#include "daemon/kernel/probe/probe.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/kernel/tracefs/tracing.h"
#include "daemon/kernel/host/whole-file.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PID_MASK ((UINT32_C(1) << 22) - 1)
#define START_MASK ((UINT32_C(1) << 26) - 1)

DEFINE_CLEANUP(DIR *, closedir)

/* False if they cannot be seen, or the process is gone. `who` is a pid or "self". */
static bool read_spaces(const char *who, uint16_t *ret) {
        struct stat pid, time = { 0 };
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", who);
        if (stat(path, &pid) < 0)
                return false;
        (void)snprintf(path, sizeof(path), "/proc/%.20s/ns/time", who);
        if (stat(path, &time) < 0 && errno != ENOENT) /* time namespaces came with Linux 5.6 */
                return false;
        *ret = (uint16_t)(((uint32_t)pid.st_ino * 0x9E3779B1U + (uint32_t)time.st_ino * 0x85EBCA6BU) >> 16);
        return true;
}

/* "PID (COMM) STATE ...": the comm may have spaces and parentheses itself. */
bool probe_owner_parse_stat(const char *stat, uint32_t *ret_pid, uint32_t *ret_start) {
        const char *p = strrchr(stat, ')');
        unsigned long long start;
        char state, *end;
        unsigned long pid;
        long n_threads;

        errno = 0;
        pid = strtoul(stat, &end, 10);
        if (!p || end == stat || *end != ' ' || pid == 0 || pid > PID_MASK || errno != 0)
                return false;
        if (sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu", &state,
                   &n_threads, &start) != 3)
                return false;
        if ((state == 'Z' || state == 'X') && n_threads <= 1)
                return false;
        *ret_pid = (uint32_t)pid;
        *ret_start = (uint32_t)start & START_MASK;
        return true;
}

static int read_stat(const char *who, uint32_t *ret_pid, uint32_t *ret_start) {
        _cleanup_free_ char *text = NULL;
        char path[64];
        size_t length;
        int r;

        (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", who);
        r = whole_file_read(path, &text, &length);
        if (r < 0)
                return r;
        return probe_owner_parse_stat(text, ret_pid, ret_start) ? 0 : -ESRCH;
}

int probe_owner_self(ProbeOwner *ret, Explanation *e) {
        ProbeOwner o;
        int r = read_stat("self", &o.pid, &o.start);

        if (r == -ENOMEM)
                return refuse_kernel_memory(e, "/proc/self/stat");
        if (r == -EMFILE || r == -ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "no fd is left to read /proc/self/stat: raise "
                              "LimitNOFILE= (RLIMIT_NOFILE) or trace less");
        if (r < 0 || !read_spaces("self", &o.spaces))
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "/proc/self cannot be read (%s), and probes in tracefs are named after the process that "
                              "defines them: is /proc mounted?", strerror(r < 0 ? -r : errno));
        *ret = o;
        return 0;
}

/* Of another namespace: only who sees all processes of the host can say that none is left there. */
static bool spaces_live(uint16_t spaces) {
        _cleanup_(closedirp) DIR *d = NULL;
        struct dirent *entry;

        if (!tasks_in_root_namespace())
                return true;
        d = opendir("/proc");
        if (!d)
                return true;
        errno = 0;
        while ((entry = readdir(d))) {
                uint16_t theirs;

                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                if (read_spaces(entry->d_name, &theirs) ? theirs == spaces : errno != ENOENT && errno != ESRCH)
                        return true;
                errno = 0;
        }
        return errno != 0;
}

bool probe_owner_lives(const ProbeOwner *o, const ProbeOwner *self) {
        uint32_t pid, start;
        char who[16];
        int r;

        if (o->spaces != self->spaces)
                return spaces_live(o->spaces);
        (void)snprintf(who, sizeof(who), "%" PRIu32, o->pid);
        r = read_stat(who, &pid, &start);
        if (r == 0)
                return start == o->start;
        if (r == -ESRCH)
                return false;
        /* hidepid= makes others look as if they were gone; kill(2) does not, but knows only our own namespace's pids */
        return r != -ENOENT || self->pid != (uint32_t)getpid() || kill((pid_t)o->pid, 0) == 0 || errno != ESRCH;
}

void probe_owner_group(const ProbeOwner *o, char ret[static PROBE_GROUP_SIZE]) {
        uint64_t bits = (uint64_t)o->spaces << 48 | (uint64_t)(o->start & START_MASK) << 22 | (o->pid & PID_MASK);

        (void)snprintf(ret, PROBE_GROUP_SIZE, PROBE_PREFIX "%016" PRIx64, bits);
}

bool probe_owner_parse(const char *group, size_t n, ProbeOwner *ret) {
        uint64_t bits = 0;

        if (n != strlen(PROBE_PREFIX) + PROBE_DIGITS || memcmp(group, PROBE_PREFIX, strlen(PROBE_PREFIX)) != 0)
                return false;
        for (size_t i = strlen(PROBE_PREFIX); i < n; i++) {
                static const char digits[] = "0123456789abcdef";
                const char *digit = memchr(digits, group[i], strlen(digits));

                if (!digit)
                        return false;
                bits = bits << 4 | (uint64_t)(digit - digits);
        }
        if ((bits & PID_MASK) == 0)
                return false;
        *ret = (ProbeOwner){ .pid = bits & PID_MASK, .start = bits >> 22 & START_MASK, .spaces = bits >> 48 };
        return true;
}

void probe_name(char kind, uint32_t id, unsigned attempt, size_t site, const char *place,
                char ret[static PROBE_NAME_SIZE]) {
        size_t n = (size_t)snprintf(ret, PROBE_NAME_SIZE, "%c%" PRIu32, kind, id);

        if (attempt > 0)
                n += (size_t)snprintf(ret + n, PROBE_NAME_SIZE - n, "v%u", attempt);
        if (site > 0)
                n += (size_t)snprintf(ret + n, PROBE_NAME_SIZE - n, "_%zu", site);
        ret[n++] = '_'; /* the longest numbers leave room for it */
        for (; *place && n < PROBE_NAME_SIZE - 1; place++)
                ret[n++] = isalnum((unsigned char)*place) && (unsigned char)*place < 0x80 ? *place : '_';
        ret[n] = '\0';
}

static bool is_name(const char *text, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!(isalnum((unsigned char)text[i]) && (unsigned char)text[i] < 0x80) && text[i] != '_')
                        return false;
        return n > 0;
}

bool probe_line_parse(const char *line, size_t length, ProbeLine *ret) {
        const char *end = line + length, *p = line, *slash, *stop;
        ProbeLine l = { .kind = '\0' };

        if (length == 0 || !memchr("prestf", line[0], 6))
                return false;
        l.kind = *p++;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
                l.maxactive = l.maxactive < 100000 ? l.maxactive * 10 + (unsigned)(*p - '0') : l.maxactive;
        if (p == end || *p++ != ':' || (l.kind != 'r' && l.kind != 'f' && p != line + 2))
                return false;
        for (stop = p; stop < end && *stop != ' ' && *stop != '\t';)
                stop++;
        slash = memchr(p, '/', (size_t)(stop - p));
        if (!slash || !is_name(p, (size_t)(slash - p)) || !is_name(slash + 1, (size_t)(stop - slash) - 1))
                return false;
        l.group = p;
        l.n_group = (size_t)(slash - p);
        l.name = slash + 1;
        l.n_name = (size_t)(stop - slash) - 1;
        *ret = l;
        return true;
}

static int remove_line(const char *root, bool is_kernel, const ProbeLine *l, size_t *n, Explanation *e) {
        _cleanup_free_ char *group = strndup(l->group, l->n_group), *name = strndup(l->name, l->n_name);
        int r;

        if (!group || !name)
                return error_origin(-ENOMEM);
        if (!probe_definition_exists(root, group, name))
                return 0; /* one name may have several lines, which go together */
        r = probe_definition_remove(root, is_kernel, group, name);
        if (r == -ENOMEM)
                return r;
        if (r == 0)
                (*n)++;
        else
                (void)refuse(e, REFUSED_DENIED, "leftover",
                             "the probe %s/%s in %s/%s_events belongs to a perfd that has ended, but cannot be removed: %s. As "
                             "root, run `echo '-:%s/%s' >> %s/%s_events`", group, name, root,
                             is_kernel ? "kprobe" : "uprobe", strerror(-r), group, name, root,
                             is_kernel ? "kprobe" : "uprobe");
        return 0;
}

static int remove_from(const char *root, bool is_kernel, const ProbeOwner *self, size_t *n, Explanation *e) {
        _cleanup_free_ char *path = probe_file(root, is_kernel, "events"), *text = NULL;
        size_t length;
        int r = path ? whole_file_read(path, &text, &length) : error_origin(-ENOMEM);

        if (r == -ENOMEM || r == -ENOENT) /* a kernel without this kind of probe */
                return r == -ENOENT ? 0 : r;
        if (r < 0)
                return refuse(e, r == -EACCES || r == -EPERM ? REFUSED_DENIED : REFUSED_UNSUPPORTED, "leftover",
                              "%s cannot be read to find probes of earlier perfds: %s", path, strerror(-r));
        r = 0;
        for (const char *line = text; *line && r == 0;) {
                size_t n_line = strcspn(line, "\n");
                ProbeOwner owner;
                ProbeLine l;

                if (probe_line_parse(line, n_line, &l) && probe_owner_parse(l.group, l.n_group, &owner) &&
                    !probe_owner_lives(&owner, self))
                        r = remove_line(root, is_kernel, &l, n, e);
                line += n_line + (line[n_line] == '\n');
        }
        return r;
}

int probe_remove_leftovers(const Tracing *t, size_t *ret_n, Explanation *e) {
        ProbeOwner self;
        size_t n = 0;
        int r;

        thread_assert(THREAD_MAIN);
        r = probe_owner_self(&self, e);
        for (int is_kernel = 0; is_kernel <= 1 && r == 0; is_kernel++)
                r = remove_from(t->root, is_kernel, &self, &n, e);
        if (r == 0)
                *ret_n = n;
        return r;
}
