/*
 * A filter that PERF_EVENT_IOC_SET_FILTER refuses is only EINVAL: the kernel writes its complaint where the filter was
 * written by text. So the refused filter is tried once more in a tracing instance of our own, which exists for that
 * moment, is never enabled and disturbs nobody, and the complaint is read from there.
 */
#include "daemon/kernel/tracefs/tracing.h"

#include "daemon/kernel/tracefs/filter-constants.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/glob.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/tracefs/format.h"
#include "daemon/kernel/tracefs/printk-strings.h"
#include "daemon/kernel/host/whole-file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include <tracefs.h>

#define FORMAT_TRIES 16 /* of one that goes while it is read */

static bool is_mounted(const char *path) {
        struct statfs s;

        return statfs(path, &s) == 0 && s.f_type == TRACEFS_MAGIC;
}

static const char standard[] = "/sys/kernel/tracing";

int tracing_open(Tracing *t, const char *root, Explanation *e) {
        bool before;
        const char *found;

        thread_assert(THREAD_MAIN);
        *t = TRACING_NULL;
        before = is_mounted(standard);
        found = root ? root : before ? standard : tracefs_tracing_dir(); /* mounts it where it belongs */
        if (!found)
                return refuse(e, REFUSED_UNSUPPORTED, "no-tracefs",
                              "tracefs is not mounted on %s and mounting it failed (%m): as root, "
                              "`mount -t tracefs tracefs %s`; the kernel needs CONFIG_TRACING", standard, standard);
        t->root = strdup(found);
        if (!t->root)
                return error_origin(-ENOMEM);
        t->mounted = !root && !before && is_mounted(standard);
        return 0;
}

int tracing_open_missing(Tracing *t, const char *why) {
        t->root = strdup(standard);
        t->missing = strdup(why);
        return t->root && t->missing ? 0 : error_origin(-ENOMEM);
}

bool tracing_is_missing(const Tracing *t) {
        return t->missing && !is_mounted(t->root);
}

int tracing_check(const Tracing *t, Explanation *e) {
        return tracing_is_missing(t) ? refuse(e, REFUSED_UNSUPPORTED, "no-tracefs", "%s", t->missing) : 0;
}

void tracing_close(Tracing *t) {
        free(t->root);
        free(t->missing);
        *t = TRACING_NULL;
}

static int read_file(const char *path, char **ret_text, size_t *ret_length) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        _cleanup_free_ char *text = NULL;
        size_t size = 0, length = 0, n;

        if (!f)
                return error_origin(-errno);
        do { /* files of tracefs have no size */
                if (length + 4096 + 1 > size) {
                        char *bigger = realloc(text, size = size ? size * 2 : 16384);

                        if (!bigger)
                                return error_origin(-ENOMEM);
                        text = bigger;
                }
                n = fread(text + length, 1, size - length - 1, f);
                length += n;
        } while (n > 0);
        if (ferror(f))
                return -EIO;
        text[length] = '\0';
        *ret_text = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

void tracing_names_free(char **names) {
        for (char **n = names; n && *n; n++)
                free(*n);
        free(names);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct Names {
        char **names;
        size_t n;
} Names;

static int names_add(Names *l, const char *group, const char *name) {
        char **names = reallocarray(l->names, l->n + 2, sizeof(*names));

        if (!names)
                return error_origin(-ENOMEM);
        l->names = names;
        if (asprintf(&names[l->n], "%s:%s", group, name) < 0) {
                names[l->n] = NULL;
                return error_origin(-ENOMEM);
        }
        names[++l->n] = NULL;
        return 0;
}

static int explain_unreadable(const char *path, int error, Explanation *e) {
        if (error == ENOMEM)
                return refuse_kernel_memory(e, path);
        if (error == EACCES || error == EPERM)
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "%s cannot be read (%s): run perfd as root, or with CAP_DAC_READ_SEARCH", path,
                              strerror(error));
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left to read %s: raise LimitNOFILE= (RLIMIT_NOFILE) or trace less", path);
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be read: %s", path, strerror(error));
}

static int names_add_group(Names *l, const char *root, const char *group, const Pattern *glob, Explanation *e) {
        char **events;
        int r = 0;

        errno = 0;
        events = tracefs_system_events(root, group);
        if (!events && errno != 0 && errno != ENOENT) /* a group may go with its module */
                return explain_unreadable(group, errno, e);
        for (char **event = events; event && *event && r == 0; event++)
                if (glob_match(glob, *event) && strcmp(*event, "enable") != 0 && strcmp(*event, "filter") != 0)
                        r = names_add(l, group, *event);
        tracefs_list_free(events);
        return r;
}

/*
 * The groups that a glob means. It means no probes that a perfd has defined for itself (kernel/probe/names.h), unless it says so:
 * whoever opens one puts a breakpoint into programs for an event of somebody else, who cannot take it away meanwhile.
 */
typedef struct GroupGlob {
        const Pattern *pattern;
        bool has_probes; /* also those of perfds */
} GroupGlob;

static bool group_is_meant(const GroupGlob *g, const char *group) {
        if (!g->has_probes && strncmp(group, PROBE_PREFIX, strlen(PROBE_PREFIX)) == 0 &&
            strspn(group + strlen(PROBE_PREFIX), "0123456789abcdef") == PROBE_DIGITS &&
            strlen(group) == strlen(PROBE_PREFIX) + PROBE_DIGITS)
                return false;
        return glob_match(g->pattern, group);
}

static int names_add_folders(Names *l, const Tracing *t, const GroupGlob *group_glob, const Pattern *name_glob, Explanation *e) {
        char **groups;
        int r = 0;

        errno = 0;
        groups = tracefs_event_systems(t->root);
        if (!groups && errno != 0)
                return explain_unreadable(t->root, errno, e);
        for (char **group = groups; group && *group && r == 0; group++)
                if (strcmp(*group, "ftrace") != 0 && group_is_meant(group_glob, *group)) {
                        r = checkpoint(e);
                        if (r == 0)
                                r = names_add_group(l, t->root, *group, name_glob, e);
                }
        tracefs_list_free(groups);
        return r;
}

/*
 * Sorts them, each once. The kernel counts the lines of available_events again for each page that is read: while a probe comes
 * that is listed before them, the last event of a page is the first one of the next, too.
 */
static void names_sort(Names *l) {
        size_t n = 0;

        if (l->n == 0)
                return;
        qsort(l->names, l->n, sizeof(*l->names), compare_names);
        for (size_t i = 1; i < l->n; i++)
                if (strcmp(l->names[n], l->names[i]) == 0)
                        free(l->names[i]);
                else
                        l->names[++n] = l->names[i];
        l->n = n + 1;
        l->names[l->n] = NULL;
}

/* GROUP:NAME in each line. */
static int names_add_lines(Names *l, char *text, const GroupGlob *group_glob, const Pattern *name_glob, Explanation *e) {
        char *rest = text, *line;
        int r = 0;

        while (r == 0 && (line = strsep(&rest, "\n"))) {
                char *name = strchr(line, ':');

                if (!name)
                        continue;
                *name++ = '\0';
                if (group_is_meant(group_glob, line) && glob_match(name_glob, name))
                        r = names_add(l, line, name);
                if (r == 0)
                        r = checkpoint(e);
        }
        return r;
}

/*
 * Linux 6.18 is seen to end who reads a folder of events/ while a probe there is taken away (an oops in eventfs_iterate()), so
 * the file is read, where there is one. It leaves out the group ftrace, whose events are the function tracer's own.
 */
static int tracing_list(const Tracing *t, const char *group_glob, const char *name_glob, Names *ret, Explanation *e) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        _cleanup_(pattern_freep) Pattern *group_pattern = NULL, *name_pattern = NULL;
        Names l = { .names = NULL };
        GroupGlob groups;
        size_t length;
        int r;

        r = glob_compile(group_glob, &group_pattern, e);
        if (r == 0)
                r = glob_compile(name_glob, &name_pattern, e);
        if (r != 0)
                return r;
        groups = (GroupGlob){ group_pattern, strncmp(group_glob, PROBE_PREFIX, strlen(PROBE_PREFIX)) == 0 };
        if (asprintf(&path, "%s/available_events", t->root) < 0)
                return error_origin(-ENOMEM);
        r = whole_file_read(path, &text, &length);
        if (r < 0 && r != -ENOENT)
                return explain_unreadable(path, -r, e);
        if (r < 0)
                r = names_add_folders(&l, t, &groups, name_pattern, e);
        else
                r = names_add_lines(&l, text, &groups, name_pattern, e);
        if (r != 0) {
                tracing_names_free(l.names);
                return r;
        }
        names_sort(&l);
        *ret = l;
        return 0;
}

/* What is nearest to a system call, "syscalls:openat", is its tracepoint, which begins with sys_enter_. */
static void find_nearest(Nearest *near, const Names *all, const char *group, const char *name, const char *wanted) {
        for (size_t i = 0; i < all->n; i++) {
                const char *entry = strncmp(all->names[i], group, strlen(group)) == 0 ? all->names[i] + strlen(group) : "";

                nearest_add(near, wanted, all->names[i]);
                if (strncmp(entry, ":sys_enter_", strlen(":sys_enter_")) == 0 && strcmp(entry + strlen(":sys_enter_"), name) == 0) {
                        *near = (Nearest){ .word = all->names[i] };
                        return;
                }
        }
}

/* Unknown, or there but not for us: events/ is only readable with privileges. */
static int tracing_refuse_unknown(const Tracing *t, const char *group, const char *name, Explanation *e) {
        _cleanup_free_ char *path = NULL, *wanted = NULL;
        Names all = { .names = NULL };
        Nearest near = NEAREST_NULL;
        int r;

        if (asprintf(&path, "%s/events", t->root) < 0 || asprintf(&wanted, "%s:%s", group, name) < 0)
                return error_origin(-ENOMEM);
        if (faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) < 0) /* access(2) asks as if we had no capabilities */
                return explain_unreadable(path, errno, e);
        r = tracing_list(t, "*", "*", &all, e);
        if (r != 0)
                return r;
        find_nearest(&near, &all, group, name, wanted);
        r = refuse(e, REFUSED_NOT_FOUND, "unknown-event",
                   "this kernel has no tracepoint %s: `perfctl available` lists its tracepoints%s", wanted, HINT(&near));
        tracing_names_free(all.names);
        return r;
}

/* Where the kernel does not have the file, or not for us, such a field is shown as its address. */
static int name_strings(const Tracing *t, Plan *p) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        size_t length;
        int r;

        if (!printk_strings_are_wanted(p))
                return 0;
        if (asprintf(&path, "%s/printk_formats", t->root) < 0)
                return error_origin(-ENOMEM);
        r = read_file(path, &text, &length);
        if (r == -ENOMEM)
                return r;
        return r == 0 ? printk_strings_add(p, text) : 0;
}

/* A probe that is removed and defined again meanwhile is read again. -ENOENT: there is none. */
static int read_format(const char *path, char **ret_text, size_t *ret_length) {
        int r = -ENOENT;

        for (int i = 0; i < FORMAT_TRIES; i++) {
                r = read_file(path, ret_text, ret_length);
                if (r != -ENODEV && r != -EIO)
                        return r;
                if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT)
                        return error_origin(-ENOENT);
        }
        return r;
}

int tracing_load(const Tracing *t, const char *group, const char *name, Plan **ret, Explanation *e) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        _cleanup_(plan_unrefp) Plan *p = NULL;
        size_t length = 0;
        int r;

        thread_assert(THREAD_MAIN);
        if (strchr(group, '/') || strchr(name, '/') || group[0] == '.' || name[0] == '.')
                return refuse(e, REFUSED_INVALID, "bad-event", "%s:%s is not the name of a tracepoint", group, name);
        r = tracing_check(t, e);
        if (r == 0)
                r = checkpoint(e);
        if (r != 0)
                return r;
        if (asprintf(&path, "%s/events/%s/%s/format", t->root, group, name) < 0)
                return error_origin(-ENOMEM);
        r = read_format(path, &text, &length);
        if (r == -ENOENT)
                return tracing_refuse_unknown(t, group, name, e);
        if (r < 0)
                return explain_unreadable(path, -r, e);
        thread_assert(THREAD_MAIN); /* libtraceevent's level of messages is one for all */
        r = format_parse(group, text, length, &p, e);
        if (r == 0)
                r = name_strings(t, p);
        if (r == 0)
                *ret = TAKE_PTR(p);
        return r;
}

int tracing_match(const Tracing *t, const char *group_glob, const char *name_glob, char ***ret_names, size_t *ret_n,
                  Explanation *e) {
        Names l = { .names = NULL };
        int r;

        thread_assert(THREAD_MAIN);
        r = tracing_check(t, e);
        if (r == 0)
                r = tracing_list(t, group_glob, name_glob, &l, e);
        if (r != 0)
                return r;
        if (l.n == 0) {
                tracing_names_free(l.names);
                return tracing_refuse_unknown(t, group_glob, name_glob, e);
        }
        *ret_names = l.names;
        *ret_n = l.n;
        return 0;
}

/*
 * The kernel's caret stands behind a name that it does not know, in or behind what parts it from the next word: where the name
 * begins, from 1.
 */
static unsigned word_before(const char *filter, unsigned at, const char *between) {
        while (at > 1 && strchr(between, filter[at - 2]))
                at--;
        while (at > 1 && (isalnum((unsigned char)filter[at - 2]) || filter[at - 2] == '_' || filter[at - 2] == '.'))
                at--;
        return at;
}

/* With these the kernel has read a value, and stands behind it. */
static bool is_about_value(const char *said) {
        static const char *const about[] = { "Expecting ", "Illegal operation", "Illegal integer" };

        for (size_t i = 0; i < ARRAY_SIZE(about); i++)
                if (strncmp(said, about[i], strlen(about[i])) == 0)
                        return true;
        return false;
}

/*
 * After a refused write the file holds the filter, a line with a caret below the error, and
 * "parse_error: TEXT".
 */
static void take_complaint(const char *text, const char *group, const char *name, const char *filter, Explanation *e) {
        const char *said = strstr(text, "parse_error: "), *caret = NULL, *line = text;
        bool is_unknown;
        unsigned at;

        for (const char *p = strchr(text, '\n'); p; p = strchr(line, '\n')) {
                line = p + 1;
                if (line[strspn(line, " ")] == '^')
                        caret = line;
        }
        if (!said)
                return;
        said += strlen("parse_error: ");
        at = caret && strspn(caret, " ") <= strlen(filter) ? (unsigned)strspn(caret, " ") + 1 : 0;
        is_unknown = strncmp(said, "Field not found", strlen("Field not found")) == 0;
        if (at > 0 && filter[at - 1 + strspn(filter + at - 1, " ")] == '\0' && !is_unknown && !is_about_value(said))
                (void)refuse(e, REFUSED_INVALID, "bad-filter", "the kernel refuses the filter '%s': something is missing at its "
                             "end (%.*s)", filter, (int)strcspn(said, "\n"), said);
        else
                (void)refuse(e, REFUSED_INVALID, "bad-filter", "the kernel refuses the filter '%s': %.*s%s%s%s%s%s", filter,
                             (int)strcspn(said, "\n"), said, is_unknown ? "; `perfctl show " : "", is_unknown ? group : "",
                             is_unknown ? ":" : "", is_unknown ? name : "", is_unknown ? "` lists them" : "");
        e->position = (is_unknown || is_about_value(said)) && at > 0 ? word_before(filter, at, is_unknown ? " =!<>~&" : " ") : at;
}

static bool ends_in_operator(const char *filter) {
        size_t n = strlen(filter);

        while (n > 0 && filter[n - 1] == ' ')
                n--;
        return n >= 2 && (memcmp(filter + n - 2, "&&", 2) == 0 || memcmp(filter + n - 2, "||", 2) == 0);
}

void tracing_explain_filter(const Tracing *t, const char *group, const char *name, const char *filter,
                            Explanation *e) {
        struct tracefs_instance *instance;
        char own[32], *text = NULL, *path = NULL;
        int n;

        (void)refuse(e, REFUSED_INVALID, "bad-filter",
                     "the kernel refuses the filter '%s' for %s:%s; `perfctl show %s:%s` lists the fields that it can "
                     "use", filter, group, name, group, name);
        if (filter_equals_check(filter, e) != 0)
                return;
        if (ends_in_operator(filter)) /* the kernel has no words for it */
                e->position = (unsigned)strlen(filter) + 1;
        (void)snprintf(own, sizeof(own), "perfd-%d", (int)getpid());
        instance = tracefs_instance_create(own);
        if (!instance)
                return; /* the explanation stays general: this is only about saying it better */
        if (asprintf(&path, "events/%s/%s/filter", group, name) >= 0) {
                (void)tracefs_instance_file_write(instance, path, filter); /* is to fail */
                text = tracefs_instance_file_read(instance, path, &n);
                if (text)
                        take_complaint(text, group, name, filter, e);
                free(text);
                free(path);
        }
        (void)tracefs_instance_destroy(instance);
        tracefs_instance_free(instance);
}

/* What cannot be written is not known to be wrong. */
int tracing_try_filter(const Tracing *t, const char *group, const char *name, const char *filter, Explanation *e) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -1;

        thread_assert(THREAD_MAIN);
        if (asprintf(&path, "%s/events/%s/%s/filter", t->root, group, name) < 0)
                return error_origin(-ENOMEM);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, filter, strlen(filter)) >= 0 || errno != EINVAL)
                return 0;
        tracing_explain_filter(t, group, name, filter, e);
        return REFUSED_INVALID;
}
