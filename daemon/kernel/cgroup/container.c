/*
 * A container is looked for in the tree by what its cgroup is called (model/container.c): its id, or the name that LXC and nspawn
 * give it. Names of podman, docker and runc stand in files of these (cgroup/container-files.c), which are read only where the tree has
 * no such id. Its cgroup is the outermost one whose path names it: what it has below, perhaps a systemd or containers of its
 * own, is counted with it.
 *
 * As docker does it, an id in full comes before a name, and a name before the beginning of an id.
 */
#include "daemon/kernel/cgroup/names.h"

#include "config/text/words.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/container-files.h"
#include "daemon/model/container.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SHORT_ID_MIN 12 /* what docker ps and crictl ps show */
#define N_SHOWN 6       /* ids that a message has room for */

typedef enum SearchBy {
        BY_ID,
        BY_SHORT_ID, /* a beginning is enough */
        BY_OWN_NAME, /* a glob of what the path itself says */
        BY_STATE,    /* what the runtimes' files have under the name, or under the glob */
} SearchBy;

/* What a walk is to find; `ids` beside `list`, or all that there are. */
typedef struct Search {
        const char *name, *wanted;
        const Pattern *glob; /* of what is wanted; NULL: it is none */
        SearchBy by;
        const KnownContainers *known; /* BY_STATE */
        size_t n_mount;               /* length of what stands before the path in a KnownContainer's cgroup */
        Cgroup *list;
        size_t n;
        Strings ids;
} Search;

static bool is_hex(const char *text) {
        return text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool is_id(const char *text) {
        return is_hex(text) && strlen(text) >= SHORT_ID_MIN;
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

/* The id of the container that the folder is of, if it is one that is looked for. */
static const char *match_known(const Search *s, const char *path, const char *id) {
        for (size_t i = 0; i < s->known->n; i++) {
                const KnownContainer *k = &s->known->list[i];

                if (k->cgroup ? strcmp(k->cgroup + s->n_mount, path) == 0 : id && strcmp(k->id, id) == 0)
                        return k->id;
        }
        return NULL;
}

static int hold_container(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Search *s = userdata;
        ContainerName name;
        bool is_container = read_container(folder->path, &name);
        const char *id = NULL;
        int r;

        if (s->by == BY_STATE)
                id = match_known(s, folder->path, is_container ? name.id : NULL);
        else if (is_container && (s->by == BY_ID         ? strcmp(name.id, s->wanted) == 0
                                  : s->by == BY_SHORT_ID ? strncmp(name.id, s->wanted, strlen(s->wanted)) == 0
                                                         : glob_match(s->glob, name.id)))
                id = name.id;
        if (!id)
                return 0;
        r = cgroup_hold(folder, &s->list, &s->n, s->name, e);
        return r != 0 ? r : strings_add(&s->ids, id);
}

static int list_container(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Search *s = userdata;
        ContainerName name;

        return read_container(folder->path, &name) ? strings_add(&s->ids, name.id) : 0;
}

/* The first few, without doubles, as "a, b and 3 more"; each cut to `length`. */
static size_t print_ids(Strings *ids, size_t length, char *buffer, size_t size) {
        size_t n = 0, used = 0;

        cgroup_sort_names(ids);
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

/* ---- what the runtimes know -------------------------------------------------------------------------------------- */

/* "podman://web": of podman alone. Other schemes are those of ids, which are nobody else's. */
static bool is_of_scheme(const KnownContainer *k, const char *name) {
        const char *scheme = strstr(name, "://");

        for (ContainerStore store = 0; scheme && store < _CONTAINER_STORE_MAX; store++) {
                const char *of = container_store_name(store);

                if (strncmp(name, of, strlen(of)) == 0 && name + strlen(of) == scheme)
                        return k->store == store;
        }
        return true;
}

static bool is_meant(const KnownContainer *k, const char *name, const Pattern *glob) {
        if (!is_of_scheme(k, name))
                return false;
        return glob ? glob_match(glob, k->name) : strcmp(cgroup_container_id(name), k->name) == 0;
}

/* Those that the name means come first; ret_n of them. */
static size_t sort_meant(KnownContainers *k, const char *name, const Pattern *glob) {
        size_t n = 0;

        for (size_t i = 0; i < k->n; i++)
                if (is_meant(&k->list[i], name, glob)) {
                        KnownContainer meant = k->list[i];

                        k->list[i] = k->list[n];
                        k->list[n++] = meant;
                }
        return n;
}

static int find_by_state(const CgroupHierarchy *h, const CgroupPattern *pattern, Search *s, ContainerFiles *files,
                         KnownContainers **ret_known, Explanation *e) {
        KnownContainers meant, *known;
        int r = container_files_read(files, h->host ? h->host : "", h->path, &known);

        if (r != 0)
                return r;
        *ret_known = known;
        meant = *known; /* borrowed: its first ones */
        meant.n = sort_meant(known, s->name, s->glob);
        s->by = BY_STATE;
        s->known = &meant;
        s->n_mount = strlen(h->path);
        r = meant.n > 0 ? cgroup_walk(h, pattern, hold_container, s, e) : 0;
        s->known = NULL;
        return r;
}

/* What a runtime knows of a container that has no cgroup: the first one that is called so, or has that id. */
static const KnownContainer *find_stopped(const KnownContainers *known, const char *name, const Pattern *glob) {
        const char *wanted = cgroup_container_id(name);

        for (size_t i = 0; i < known->n; i++)
                if (is_meant(&known->list[i], name, glob) ||
                    (is_id(wanted) && strncmp(known->list[i].id, wanted, strlen(wanted)) == 0))
                        return &known->list[i];
        return NULL;
}

int cgroup_container_fate(const CgroupHierarchy *h, const char *name, CgroupFate *ret) {
        _cleanup_(container_files_deinit) ContainerFiles own = CONTAINER_FILES_NULL;
        KnownContainers *known;
        int r = container_files_read(h->containers ? h->containers : &own, h->host ? h->host : "", h->path, &known);

        thread_assert(THREAD_MAIN);
        if (r < 0)
                return r;
        if (find_stopped(known, name, NULL))
                *ret = CGROUP_FATE_STOPPED;
        else if (is_id(cgroup_container_id(name)) && known->has_stores && !known->has_some_only && known->problem[0] == '\0')
                *ret = CGROUP_FATE_GONE;
        else
                *ret = CGROUP_FATE_UNKNOWN;
        return 0;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static int refuse_container(const CgroupHierarchy *h, const CgroupPattern *pattern, const Search *s, const KnownContainers *known,
                            Explanation *e) {
        bool is_too_short = is_hex(s->wanted) && strlen(s->wanted) < SHORT_ID_MIN;
        const KnownContainer *stopped = find_stopped(known, s->name, s->glob);
        char shown[N_SHOWN * 66 + 32];
        Search all = { .name = s->name };
        Nearest near = NEAREST_NULL;
        size_t n = 0;
        int r;

        if (stopped)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-container", "container %s is not running: %s knows it (%.12s), but "
                        "it has no cgroup", QUOTE(s->name), container_store_name(stopped->store), stopped->id);
        r = cgroup_walk(h, pattern, list_container, &all, e);
        for (size_t i = 0; i < known->n; i++)
                nearest_add(&near, s->wanted, known->list[i].name);
        if (r == 0) {
                n = print_ids(&all.ids, SHORT_ID_MIN, shown, sizeof(shown));
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-container", "there is no container %s%s; %s%s%s%s%s",
                           QUOTE(s->name), is_too_short ? " (a short id has at least 12 digits)" : "",
                           n > 0 ? "there are " : "no cgroup of this host belongs to a container", shown, HINT(&near),
                           known->problem[0] ? "; " : "", known->problem);
        }
        strings_deinit(&all.ids);
        return r;
}

static int judge(Search *s, Explanation *e) {
        char shown[N_SHOWN * 66 + 32];

        if (s->n == 0 || print_ids(&s->ids, 64, shown, sizeof(shown)) == 1)
                return 0;
        return refuse(e, REFUSED_INVALID, "ambiguous-container",
                      "%s is ambiguous: it matches the containers %s; write a longer prefix, or an id", QUOTE(s->name), shown);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int find_one(const CgroupHierarchy *h, const CgroupPattern *pattern, Search *s, ContainerFiles *files, Explanation *e) {
        KnownContainers *known = NULL; /* of nobody who has been found before */
        int r;

        s->by = BY_ID;
        r = cgroup_walk(h, pattern, hold_container, s, e);
        if (r == 0 && s->n == 0)
                r = find_by_state(h, pattern, s, files, &known, e);
        if (r == 0 && s->n == 0 && is_id(s->wanted)) {
                s->by = BY_SHORT_ID;
                r = cgroup_walk(h, pattern, hold_container, s, e);
        }
        if (r == 0)
                r = s->n == 0 ? refuse_container(h, pattern, s, known, e) : judge(s, e);
        return r;
}

static int find_all(const CgroupHierarchy *h, const CgroupPattern *pattern, Search *s, ContainerFiles *files, Explanation *e) {
        KnownContainers *known;
        int r;

        s->by = BY_OWN_NAME;
        r = cgroup_walk(h, pattern, hold_container, s, e);
        return r == 0 ? find_by_state(h, pattern, s, files, &known, e) : r;
}

int cgroup_find_container(const CgroupHierarchy *h, const CgroupPattern *pattern, const char *name, Cgroup **list,
                          size_t *n, Explanation *e) {
        _cleanup_(container_files_deinit) ContainerFiles own = CONTAINER_FILES_NULL;
        ContainerFiles *files = h->containers ? h->containers : &own;
        Search s = { .name = name, .wanted = cgroup_container_id(name), .glob = pattern->container };
        int r = s.glob ? find_all(h, pattern, &s, files, e) : find_one(h, pattern, &s, files, e);

        strings_deinit(&s.ids);
        *list = s.list;
        *n = s.n;
        return r;
}
