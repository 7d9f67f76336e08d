/*
 * A container is looked for in the tree alone, by what its cgroup is called (model/container.c), so that perfd depends
 * on no runtime. Its cgroup is the outermost one whose path names it: what it has below, perhaps a systemd or
 * containers of its own, is counted with it.
 */
#include "daemon/kernel/cgroup-names.h"

#include "config/words.h"
#include "daemon/model/container.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SHORT_ID_MIN 12 /* what docker ps and crictl ps show */
#define N_SHOWN 6       /* ids that a message has room for */

/* What a walk is to find; `ids` beside `list`, or all that there are. */
typedef struct Search {
        const char *name, *wanted;
        bool is_short; /* a beginning is enough */
        Cgroup *list;
        size_t n;
        Strings ids;
} Search;

static bool is_hex(const char *text) {
        return text[strspn(text, "0123456789abcdef")] == '\0';
}

/* True if the folder is a container's own one. */
static bool read_container(const char *path, ContainerName *ret) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *parent = strndup(path, slash ? (size_t)(slash - path) : 0);
        ContainerName above;

        container_name_of(path, ret);
        if (!parent || !ret->id[0])
                return false;
        container_name_of(parent, &above);
        return strcmp(above.id, ret->id) != 0;
}

static int hold_container(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Search *s = userdata;
        ContainerName name;
        int r;

        if (!read_container(folder->path, &name))
                return 0;
        if (s->is_short ? strncmp(name.id, s->wanted, strlen(s->wanted)) != 0 : strcmp(name.id, s->wanted) != 0)
                return 0;
        r = cgroup_hold(folder, &s->list, &s->n, s->name, e);
        return r != 0 ? r : strings_add(&s->ids, name.id);
}

static int list_container(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Search *s = userdata;
        ContainerName name;

        return read_container(folder->path, &name) ? strings_add(&s->ids, name.id) : 0;
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_texts(Strings *s) {
        if (s->n > 1)
                qsort(s->items, s->n, sizeof(*s->items), compare_texts);
}

/* The first few, without doubles, as "a, b and 3 more"; each cut to `length`. */
static size_t print_ids(Strings *ids, size_t length, char *buffer, size_t size) {
        size_t n = 0, used = 0;

        sort_texts(ids);
        buffer[0] = '\0';
        for (size_t i = 0; i < ids->n; i++) {
                if (i > 0 && strcmp(ids->items[i], ids->items[i - 1]) == 0)
                        continue;
                if (n++ < N_SHOWN)
                        used += (size_t)snprintf(buffer + used, size - used, "%s%.*s", n > 1 ? ", " : "",
                                                 is_hex(ids->items[i]) ? (int)length : 64, ids->items[i]);
        }
        if (n > N_SHOWN)
                (void)snprintf(buffer + used, size - used, " and %zu more", n - N_SHOWN);
        return n;
}

static int refuse_container(const CgroupHierarchy *h, const CgroupPattern *pattern, const Search *s, Explanation *e) {
        bool is_too_short = is_hex(s->wanted) && strlen(s->wanted) < SHORT_ID_MIN;
        char shown[N_SHOWN * 66 + 32];
        Search all = { .name = s->name };
        size_t n = 0;
        int r = cgroup_walk(h, pattern, list_container, &all, e);

        if (r == 0) {
                n = print_ids(&all.ids, SHORT_ID_MIN, shown, sizeof(shown));
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-container", "there is no container %s%s; %s%s",
                           QUOTE(s->name), is_too_short ? " (a short id has at least 12 digits)" : "",
                           n > 0 ? "there are " : "no cgroup here is one of a container", shown);
        }
        strings_deinit(&all.ids);
        return r;
}

static int judge(Search *s, Explanation *e) {
        char shown[N_SHOWN * 66 + 32];

        if (s->n == 0 || print_ids(&s->ids, 64, shown, sizeof(shown)) == 1)
                return 0;
        return refuse(e, REFUSED_INVALID, "ambiguous-container",
                      "%s may be each of these containers: %s; write more of it", QUOTE(s->name), shown);
}

int cgroup_find_container(const CgroupHierarchy *h, const CgroupPattern *pattern, const char *name, Cgroup **list,
                          size_t *n, Explanation *e) {
        Search s = { .name = name, .wanted = cgroup_container_id(name) };
        int r = cgroup_walk(h, pattern, hold_container, &s, e);

        if (r == 0 && s.n == 0 && is_hex(s.wanted) && strlen(s.wanted) >= SHORT_ID_MIN) {
                s.is_short = true; /* only now: a name that is hexadecimal too is meant as it is written */
                r = cgroup_walk(h, pattern, hold_container, &s, e);
        }
        if (r == 0)
                r = s.n == 0 ? refuse_container(h, pattern, &s, e) : judge(&s, e);
        strings_deinit(&s.ids);
        *list = s.list;
        *n = s.n;
        return r;
}

/* The innermost folder of a path that is there, and what it has instead of the next component. */
int cgroup_refuse_path(const CgroupHierarchy *h, const char *name, Explanation *e) {
        _cleanup_(strings_deinit) Strings names = STRINGS_NULL;
        _cleanup_free_ char *parent = NULL, *missing = NULL;
        Nearest near = NEAREST_NULL;
        int r = cgroup_normalise(name, &parent, e);

        if (r != 0)
                return r;
        if (strncmp(parent, h->path, strlen(h->path)) == 0)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-cgroup",
                              "there is no cgroup %s: names begin below %s, so leave that out", QUOTE(name), h->path);
        do {
                _cleanup_close_ int fd = -1;
                char *slash = strrchr(parent, '/');
                uint64_t inode;

                free(missing);
                missing = strdup(slash + 1);
                slash[slash == parent] = '\0';
                if (!missing)
                        return error_origin(-ENOMEM);
                r = cgroup_walk_open(h, parent, &fd, &inode, e);
                if (r == 0)
                        r = cgroup_walk_list(fd, parent, &names, e);
        } while (r == CGROUP_WALK_GONE);
        if (r != 0)
                return r;
        sort_texts(&names); /* the first of those that are equally near is shown */
        for (size_t i = 0; i < names.n; i++)
                nearest_add(&near, missing, names.items[i]);
        return refuse(e, REFUSED_NOT_FOUND, "unknown-cgroup", "there is no cgroup %s: %s has no %s%s", QUOTE(name),
                      QUOTE(parent), QUOTE(missing), HINT(&near));
}

static int list_unit(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Search *s = userdata;
        const char *last = strrchr(folder->path, '/') + 1;
        ContainerName name;

        container_name_of(last, &name); /* of that component alone */
        return name.unit[0] ? strings_add(&s->ids, name.unit) : 0;
}

int cgroup_refuse_unit(const CgroupHierarchy *h, const CgroupPattern *pattern, Explanation *e) {
        const char *wanted = pattern->components[pattern->n_components - 1], *instance = strstr(wanted, "@.");
        char glob[NAME_MAX + 2];
        Nearest near = NEAREST_NULL;
        Search all = { .name = wanted };
        int r = cgroup_walk(h, pattern, list_unit, &all, e);

        sort_texts(&all.ids);
        for (size_t i = 0; i < all.ids.n; i++)
                nearest_add(&near, wanted, all.ids.items[i]);
        if (r == 0 && instance) {
                (void)snprintf(glob, sizeof(glob), "%.*s@*%s", (int)(instance - wanted), wanted, instance + 1);
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-unit",
                           "no cgroup belongs to %s: that is a template, and all of its instances are %s", QUOTE(wanted),
                           QUOTE(glob));
        } else if (r == 0) {
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-unit",
                           "no cgroup belongs to a unit %s: it does not run, or is of a kind that has none%s",
                           QUOTE(wanted), HINT(&near));
        }
        strings_deinit(&all.ids);
        return r;
}
