/* What there is instead: whoever writes a name wrong has mostly meant one that is near. */
#include "daemon/kernel/cgroup/names.h"

#include "config/text/words.h"
#include "daemon/model/container.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void cgroup_sort_names(Strings *s) {
        if (s->n > 1)
                qsort(s->items, s->n, sizeof(*s->items), compare_texts);
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
                              "there is no cgroup %s: paths are relative to %s, so omit that", QUOTE(name), h->path);
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
        cgroup_sort_names(&names); /* the first of those that are equally near is shown */
        for (size_t i = 0; i < names.n; i++)
                nearest_add(&near, missing, names.items[i]);
        return refuse(e, REFUSED_NOT_FOUND, "unknown-cgroup", "there is no cgroup %s: %s has no %s%s", QUOTE(name),
                      QUOTE(parent), QUOTE(missing), HINT(&near));
}

static int list_unit(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Strings *units = userdata;
        const char *last = strrchr(folder->path, '/') + 1;
        ContainerName name;

        container_name_of(last, &name); /* of that component alone */
        return name.unit[0] ? strings_add(units, name.unit) : 0;
}

int cgroup_refuse_unit(const CgroupHierarchy *h, const CgroupPattern *pattern, Explanation *e) {
        const char *wanted = pattern->components[pattern->n_components - 1], *instance = strstr(wanted, "@.");
        char glob[NAME_MAX + 2];
        Nearest near = NEAREST_NULL;
        _cleanup_(strings_deinit) Strings all = STRINGS_NULL;
        int r = cgroup_walk(h, pattern, list_unit, &all, e);

        cgroup_sort_names(&all);
        for (size_t i = 0; i < all.n; i++)
                nearest_add(&near, wanted, all.items[i]);
        if (r == 0 && instance) {
                (void)snprintf(glob, sizeof(glob), "%.*s@*%s", (int)(instance - wanted), wanted, instance + 1);
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-unit",
                           "no cgroup belongs to %s: that is a template; all of its instances are %s", QUOTE(wanted),
                           QUOTE(glob));
        } else if (r == 0) {
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-unit",
                           "no cgroup belongs to a unit %s: it is not running, or its type has none%s",
                           QUOTE(wanted), HINT(&near));
        }
        return r;
}
