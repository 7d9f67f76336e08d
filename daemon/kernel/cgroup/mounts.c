/*
 * The kernel has one perf_event controller, which is either in v2 or in a v1 hierarchy, and perf_event_open(2) accepts
 * only folders of where it is. /proc/cgroups says which of both for the whole system, also when the v1 mount is in
 * another mount namespace; mountinfo says where we can reach it. Of several mounts the one that shows most of the
 * hierarchy is taken, if the folder at its path really is that mount's: another one may lie above it.
 */
#include "daemon/kernel/cgroup/mounts.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/kernel/cgroup/container-files.h"
#include "daemon/kernel/host/whole-file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The fields of a line that are looked at; they point into it. */
typedef struct MountLine {
        unsigned id, parent, major, minor;
        char *root, *path, *type, *options;
} MountLine;

static bool is_octal(char c) {
        return c >= '0' && c <= '7';
}

/* The kernel writes space, tab, newline and backslash as \ooo (mangle_path()). In place. */
static void unescape_octal(char *text) {
        char *to = text;

        for (const char *p = text; *p; to++) {
                int byte = 0;

                if (p[0] == '\\' && is_octal(p[1]) && is_octal(p[2]) && is_octal(p[3]))
                        byte = (p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0');
                if (byte > 0 && byte < 256) {
                        *to = (char)byte;
                        p += 4;
                } else {
                        *to = *p++;
                }
        }
        *to = '\0';
}

/*
 * 31 23 0:28 / /sys/fs/cgroup rw,relatime shared:1 - cgroup2 cgroup2 rw
 * id parent device root path options optional... - type source super-options. Fields may be empty: a source is.
 */
static bool mount_line_read(char *line, MountLine *ret) {
        MountLine m = { .root = NULL };
        int n = 0;
        char *rest, *field;

        if (sscanf(line, "%u %u %u:%u %n", &m.id, &m.parent, &m.major, &m.minor, &n) != 4 || n == 0)
                return false;
        rest = line + n;
        m.root = strsep(&rest, " ");
        m.path = strsep(&rest, " ");
        (void)strsep(&rest, " ");
        do {
                field = strsep(&rest, " ");
        } while (field && strcmp(field, "-") != 0);
        m.type = strsep(&rest, " ");
        (void)strsep(&rest, " ");
        m.options = strsep(&rest, " ");
        if (!m.options || m.root[0] != '/' || m.path[0] != '/')
                return false;
        unescape_octal(m.root);
        unescape_octal(m.path);
        *ret = m;
        return true;
}

static bool has_option(const char *options, const char *option) {
        size_t n = strlen(option);

        for (const char *p = options; *p; p += strcspn(p, ","), p += *p == ',')
                if (strcspn(p, ",") == n && strncmp(p, option, n) == 0)
                        return true;
        return false;
}

void cgroup_mounts_free(CgroupMount *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(list[i].root);
                free(list[i].path);
        }
        free(list);
}

typedef struct Mounts {
        CgroupMount *list;
        size_t n;
} Mounts;

static void mounts_deinit(Mounts *m) {
        cgroup_mounts_free(m->list, m->n);
}

static int mounts_add(Mounts *m, const MountLine *line) {
        CgroupMount *more = reallocarray(m->list, m->n + 1, sizeof(*more)), *mount;

        if (!more)
                return error_origin(-ENOMEM);
        m->list = more;
        mount = &more[m->n++];
        *mount = (CgroupMount){ .id = line->id, .parent = line->parent, .major = line->major, .minor = line->minor,
                                .root = strdup(line->root), .path = strdup(line->path),
                                .is_v2 = strcmp(line->type, "cgroup2") == 0 };
        mount->has_perf_event = !mount->is_v2 && has_option(line->options, "perf_event");
        mount->has_memory = !mount->is_v2 && has_option(line->options, "memory");
        return mount->root && mount->path ? 0 : error_origin(-ENOMEM);
}

/* Each line of the text, copied, because reading it takes it apart. */
static int read_lines(const char *text, int (*use)(Mounts *m, const MountLine *line), Mounts *m, Explanation *e) {
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *line;
        int r = 0;

        if (!copy)
                return error_origin(-ENOMEM);
        for (unsigned number = 1; r == 0 && (line = strsep(&rest, "\n")); number++) {
                MountLine fields;

                if (!*line)
                        continue;
                if (!mount_line_read(line, &fields))
                        return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                                      "line %u of /proc/self/mountinfo is not in the format of proc_pid_mountinfo(5)",
                                      number);
                r = use(m, &fields);
        }
        return r;
}

static int take_cgroup(Mounts *m, const MountLine *line) {
        return strcmp(line->type, "cgroup") == 0 || strcmp(line->type, "cgroup2") == 0 ? mounts_add(m, line) : 0;
}

/* What is mounted on the root of a mount has that mount for its parent, and the same path. */
static int note_covered(Mounts *m, const MountLine *line) {
        for (size_t i = 0; i < m->n; i++)
                if (m->list[i].id == line->parent && line->id != line->parent &&
                    strcmp(m->list[i].path, line->path) == 0)
                        m->list[i].is_covered = true;
        return 0;
}

int cgroup_mounts_parse(const char *text, CgroupMount **ret, size_t *ret_n, Explanation *e) {
        _cleanup_(mounts_deinit) Mounts m = { .list = NULL };
        int r = read_lines(text, take_cgroup, &m, e);

        if (r == 0)
                r = read_lines(text, note_covered, &m, e);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(m.list);
        *ret_n = m.n;
        m.n = 0;
        return 0;
}

CgroupUse cgroup_controllers_parse(const char *text) {
        for (const char *line = text, *end; line; line = end ? end + 1 : NULL) {
                unsigned hierarchy, n_cgroups, enabled;

                end = strchr(line, '\n');
                if (sscanf(line, "perf_event %u %u %u", &hierarchy, &n_cgroups, &enabled) != 3)
                        continue;
                return !enabled ? CGROUP_USE_NOTHING : hierarchy == 0 ? CGROUP_USE_V2 : CGROUP_USE_V1;
        }
        return CGROUP_USE_NOTHING;
}

void cgroup_hierarchy_deinit(CgroupHierarchy *h) {
        free(h->path);
        free(h->root);
        free(h->host);
        if (h->containers)
                container_files_deinit(h->containers);
        free(h->containers);
        *h = CGROUP_HIERARCHY_NULL;
}

/* -ENOENT is for the caller, the rest is refused. */
static int read_proc(const char *root, const char *name, char **ret, Explanation *e) {
        _cleanup_free_ char *path = NULL;
        size_t length;
        int r;

        if (asprintf(&path, "%s/proc/%s", root, name) < 0) {
                path = NULL;
                return error_origin(-ENOMEM);
        }
        r = whole_file_read(path, ret, &length);
        if (r == 0 || r == -ENOENT)
                return r;
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be read: %s", path, strerror(-r));
}

/* How far the mounted folder is from the hierarchy's root; ".." is nearer than what our namespace calls the root. */
static int depth_of(const char *root) {
        int depth = 0;

        for (const char *p = root; *p; p += strcspn(p, "/")) {
                p += strspn(p, "/");
                if (*p)
                        depth += strcspn(p, "/") == 2 && strncmp(p, "..", 2) == 0 ? -1 : 1;
        }
        return depth;
}

static bool is_there(const CgroupMount *m, const char *path) {
        struct stat s;

        return stat(path, &s) == 0 && S_ISDIR(s.st_mode) && major(s.st_dev) == m->major && minor(s.st_dev) == m->minor;
}

static int choose(const char *root, const Mounts *mounts, bool is_v1, CgroupHierarchy *ret) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy best = CGROUP_HIERARCHY_NULL;

        for (size_t i = 0; i < mounts->n; i++) {
                const CgroupMount *m = &mounts->list[i];
                _cleanup_free_ char *path = NULL;

                if (m->is_covered || (is_v1 ? !m->has_perf_event : !m->is_v2))
                        continue;
                if (asprintf(&path, "%s%s", root, m->path) < 0) {
                        path = NULL;
                        return error_origin(-ENOMEM);
                }
                if (!is_there(m, path) || (best.path && depth_of(m->root) >= depth_of(best.root)))
                        continue;
                cgroup_hierarchy_deinit(&best);
                best = (CgroupHierarchy){ .path = TAKE_PTR(path), .root = strdup(m->root), .host = strdup(root), .is_v1 = is_v1 };
                if (!best.root || !best.host)
                        return error_origin(-ENOMEM);
        }
        *ret = best;
        best = CGROUP_HIERARCHY_NULL;
        return 0;
}

static int refuse_hierarchy(CgroupUse use, Explanation *e) {
        if (use == CGROUP_USE_NOTHING)
                return refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                              "this kernel has no perf_event controller for cgroups: use one with CONFIG_CGROUP_PERF, and "
                              "without cgroup_disable=perf_event on its command line");
        if (use == CGROUP_USE_V1)
                return refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                              "perf_event belongs to a cgroup v1 hierarchy (/proc/cgroups) that is not mounted where perfd can "
                              "see it: run `mount -t cgroup -o perf_event cgroup /sys/fs/cgroup/perf_event`, or unmount it "
                              "elsewhere to use v2");
        return refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                      "no cgroup v2 hierarchy is mounted: run `mount -t cgroup2 none /sys/fs/cgroup` (together with v1: "
                      "/sys/fs/cgroup/unified)");
}

int cgroup_find_hierarchy(const char *root, CgroupHierarchy *ret, Explanation *e) {
        _cleanup_free_ char *mountinfo = NULL, *controllers = NULL;
        _cleanup_(mounts_deinit) Mounts mounts = { .list = NULL };
        CgroupHierarchy found = CGROUP_HIERARCHY_NULL;
        CgroupUse use = CGROUP_USE_V2;
        int r;

        thread_assert(THREAD_MAIN);
        r = read_proc(root, "self/mountinfo", &mountinfo, e);
        if (r == -ENOENT)
                return refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                              "%s/proc/self/mountinfo does not exist: is /proc mounted?", root);
        if (r == 0)
                r = cgroup_mounts_parse(mountinfo, &mounts.list, &mounts.n, e);
        if (r != 0)
                return r;
        r = read_proc(root, "cgroups", &controllers, e);
        if (r == 0)
                use = cgroup_controllers_parse(controllers);
        else if (r != -ENOENT) /* a kernel that has only v2 may leave it out */
                return r;
        if (use != CGROUP_USE_NOTHING) {
                r = choose(root, &mounts, use == CGROUP_USE_V1, &found);
                if (r != 0)
                        return r;
        }
        if (!found.path)
                return refuse_hierarchy(use, e);
        found.containers = calloc(1, sizeof(*found.containers)); /* CONTAINER_FILES_NULL */
        if (!found.containers) {
                cgroup_hierarchy_deinit(&found);
                return error_origin(-ENOMEM);
        }
        *ret = found;
        return 0;
}
