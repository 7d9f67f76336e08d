/*
 * JSON is read as the YAML that it is, by the library that reads the configuration: events, not a tree, so a file costs no
 * more memory than its longest text. Anchors, aliases and tags are no JSON and are refused. Files are the runtimes' own, but
 * labels and environments in them are anybody's.
 */
#include "daemon/kernel/cgroup/container-state.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#define KEY_MAX 32 /* of a key that matters, with its zero */

/* docker's own folder and runc's have one of each container's in them, and podman's have all in one file. */
static const struct {
        const char *folder, *file; /* file: in each folder there */
        ContainerStore store;
} stores[] = {
        { "/var/lib/docker/containers", "config.v2.json", CONTAINER_STORE_DOCKER },
        { "/run/runc", "state.json", CONTAINER_STORE_RUNC },
};

const char *const container_state_folders[] = {
        "/var/lib/containers/storage/overlay-containers", "/var/lib/containers/storage/vfs-containers",
        "/var/lib/containers/storage/btrfs-containers",   "/run/containers/storage/overlay-containers", NULL,
};

static const char *const podman_files[] = { "containers.json", "volatile-containers.json" };

bool container_state_is_file(const char *name) {
        return strcmp(name, podman_files[0]) == 0 || strcmp(name, podman_files[1]) == 0;
}

const char *container_store_name(ContainerStore store) {
        static const char *const names[] = { [CONTAINER_STORE_PODMAN] = "podman", [CONTAINER_STORE_DOCKER] = "docker",
                                             [CONTAINER_STORE_RUNC] = "runc" };

        return names[store];
}

static void known_container_deinit(KnownContainer *c) {
        free(c->id);
        free(c->name);
        free(c->cgroup);
}

static void forget_from(KnownContainers *k, size_t n) {
        while (k->n > n)
                known_container_deinit(&k->list[--k->n]);
}

void known_containers_deinit(KnownContainers *k) {
        forget_from(k, 0);
        free(k->list);
        *k = KNOWN_CONTAINERS_NULL;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Where the reader is. Of the mapping that is a container, `key` is the last key; of a mapping in it, `inner` is. */
typedef struct StateReader {
        yaml_parser_t parser;
        ContainerStore store;
        const char *mount;
        KnownContainers *known;
        unsigned depth, depth_of_container; /* in how many mappings and lists */
        bool is_value[CONTAINER_STATE_DEPTH_MAX + 1], is_map[CONTAINER_STATE_DEPTH_MAX + 1]; /* by depth */
        char key[KEY_MAX];
        char *id, *name, *cgroup;
} StateReader;

static int refuse_state(const StateReader *r, const char *why, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "unknown-container", "it is not JSON as %s writes it: line %zu, column %zu: %s",
                      container_store_name(r->store), r->parser.mark.line + 1, r->parser.mark.column + 1, why);
}

static void forget_container(StateReader *r) {
        free(TAKE_PTR(r->id));
        free(TAKE_PTR(r->name));
        free(TAKE_PTR(r->cgroup));
}

/* A text with a zero byte in it is nobody's name. */
static int keep_text(char **to, const yaml_event_t *v) {
        if (*to || strlen((const char *)v->data.scalar.value) != v->data.scalar.length || v->data.scalar.length == 0)
                return 0;
        *to = strdup((const char *)v->data.scalar.value);
        return *to ? 0 : error_origin(-ENOMEM);
}

/* One that has no name is known by its id. What is no container ends unseen: docker's folder may have others' in it. */
static int add_container(StateReader *r) {
        KnownContainers *k = r->known;
        KnownContainer *more, c = { .store = r->store };

        if (!r->id || k->n == CONTAINER_STATE_MAX) {
                forget_container(r);
                return 0;
        }
        more = reallocarray(k->list, k->n + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        k->list = more;
        c.id = TAKE_PTR(r->id);
        c.name = r->name ? TAKE_PTR(r->name) : strdup(c.id);
        c.cgroup = TAKE_PTR(r->cgroup);
        if (c.name && c.name[0] == '/') /* as docker writes it */
                memmove(c.name, c.name + 1, strlen(c.name));
        more[k->n++] = c;
        return c.name ? 0 : error_origin(-ENOMEM);
}

/* A value of the container itself, or one level below: podman has a list of names, runc a mapping of paths. */
static int read_value(StateReader *r, const yaml_event_t *v) {
        const char *text = (const char *)v->data.scalar.value;
        size_t n = strlen(r->mount);

        if (r->depth == r->depth_of_container && strcmp(r->key, r->store == CONTAINER_STORE_DOCKER ? "ID" : "id") == 0)
                return keep_text(&r->id, v);
        if (r->depth == r->depth_of_container && r->store == CONTAINER_STORE_DOCKER && strcmp(r->key, "Name") == 0)
                return keep_text(&r->name, v);
        if (r->depth != r->depth_of_container + 1)
                return 0;
        if (r->store == CONTAINER_STORE_PODMAN && strcmp(r->key, "names") == 0)
                return keep_text(&r->name, v);
        if (r->store == CONTAINER_STORE_RUNC && strcmp(r->key, "cgroup_paths") == 0 && strncmp(text, r->mount, n) == 0 &&
            text[n] == '/')
                return keep_text(&r->cgroup, v);
        return 0;
}

static int read_scalar(StateReader *r, const yaml_event_t *v) {
        bool is_key = r->is_map[r->depth] && !r->is_value[r->depth];

        r->is_value[r->depth] = is_key;
        if (!is_key)
                return read_value(r, v);
        if (r->depth == r->depth_of_container)
                (void)snprintf(r->key, sizeof(r->key), "%s", (const char *)v->data.scalar.value);
        return 0;
}

static int enter(StateReader *r, bool is_map, Explanation *e) {
        if (r->depth == CONTAINER_STATE_DEPTH_MAX)
                return refuse_state(r, "nested more deeply than any runtime writes", e);
        if (r->is_map[r->depth] && !r->is_value[r->depth])
                return refuse_state(r, "a key that is not a text", e);
        r->is_value[r->depth] = false; /* what follows it is a key */
        r->depth++;
        r->is_map[r->depth] = is_map;
        r->is_value[r->depth] = false;
        if (is_map && r->depth == r->depth_of_container)
                r->key[0] = '\0';
        return 0;
}

static int leave(StateReader *r) {
        return r->depth-- == r->depth_of_container && r->is_map[r->depth + 1] ? add_container(r) : 0;
}

static int read_event(StateReader *r, const yaml_event_t *v, Explanation *e) {
        switch (v->type) {
        case YAML_SCALAR_EVENT:
                return v->data.scalar.anchor || v->data.scalar.tag ? refuse_state(r, "an anchor or a tag", e) : read_scalar(r, v);
        case YAML_MAPPING_START_EVENT:
                if (v->data.mapping_start.anchor || v->data.mapping_start.tag)
                        return refuse_state(r, "an anchor or a tag", e);
                if (v->data.mapping_start.style != YAML_FLOW_MAPPING_STYLE)
                        return refuse_state(r, "expected { and }", e);
                return enter(r, true, e);
        case YAML_SEQUENCE_START_EVENT:
                if (v->data.sequence_start.anchor || v->data.sequence_start.tag)
                        return refuse_state(r, "an anchor or a tag", e);
                if (v->data.sequence_start.style != YAML_FLOW_SEQUENCE_STYLE)
                        return refuse_state(r, "expected [ and ]", e);
                return enter(r, false, e);
        case YAML_MAPPING_END_EVENT:
        case YAML_SEQUENCE_END_EVENT:
                return leave(r);
        case YAML_ALIAS_EVENT:
                return refuse_state(r, "an alias", e);
        default:
                return 0; /* ends and beginnings of the stream and its documents */
        }
}

static int read_events(StateReader *r, Explanation *e) {
        bool ends = false;
        int error = 0;

        while (!ends && error == 0) {
                yaml_event_t v;

                if (!yaml_parser_parse(&r->parser, &v))
                        return r->parser.error == YAML_MEMORY_ERROR ? error_origin(-ENOMEM)
                                : refuse_state(r, r->parser.problem ? r->parser.problem : "it cannot be read", e);
                ends = v.type == YAML_STREAM_END_EVENT;
                error = read_event(r, &v, e);
                yaml_event_delete(&v);
        }
        return error;
}

int container_state_parse(ContainerStore store, const char *bytes, size_t length, const char *mount, KnownContainers *k,
                          Explanation *e) {
        StateReader r = { .store = store, .mount = mount, .known = k, .depth_of_container = store == CONTAINER_STORE_PODMAN ? 2 : 1 };
        size_t n = k->n;
        int error;

        if (length > CONTAINER_STATE_SIZE_MAX)
                return refuse(e, REFUSED_INVALID, "unknown-container", "it has %zu bytes, more than the limit of %d",
                              length, CONTAINER_STATE_SIZE_MAX);
        if (!yaml_parser_initialize(&r.parser))
                return error_origin(-ENOMEM);
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, length);
        error = read_events(&r, e);
        yaml_parser_delete(&r.parser);
        forget_container(&r);
        if (error != 0)
                forget_from(k, n);
        return error;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void note_problem(KnownContainers *k, const char *path, const char *why) {
        if (!k->problem[0])
                (void)snprintf(k->problem, sizeof(k->problem), "%.150s cannot be read: %.150s", path, why);
}

/* A pipe would let whoever put it there stop the daemon. -EFBIG: larger than what is read. */
static int read_bounded(int folder, const char *path, char **ret, size_t *ret_length) {
        _cleanup_close_ int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        struct stat s;
        ssize_t n = 1;

        if (fd < 0 || fstat(fd, &s) < 0)
                return error_origin(-errno);
        if (!S_ISREG(s.st_mode))
                return -EINVAL;
        if (s.st_size > CONTAINER_STATE_SIZE_MAX)
                return -EFBIG;
        text = malloc((size_t)s.st_size + 1);
        if (!text)
                return error_origin(-ENOMEM);
        while (length < (size_t)s.st_size && (n = read(fd, text + length, (size_t)s.st_size - length)) != 0)
                if (n > 0)
                        length += (size_t)n;
                else if (errno != EINTR)
                        return error_origin(-errno);
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

/* ENOENT is no problem: that runtime, or this container, is not there. shown: the path for people. */
static int read_file(int folder, const char *path, const char *shown, ContainerStore store, const char *mount, KnownContainers *k) {
        _cleanup_free_ char *text = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t length = 0;
        int r = read_bounded(folder, path, &text, &length);

        if (r == -ENOENT || r == -ENOTDIR || r == -ENOMEM)
                return r == -ENOMEM ? r : 0;
        if (r < 0) {
                note_problem(k, shown, strerror(-r));
                return 0;
        }
        k->has_stores = true;
        r = container_state_parse(store, text, length, mount, k, &e);
        if (r > 0)
                note_problem(k, shown, e.text);
        return r > 0 ? 0 : r;
}

static int read_folder(const char *path, size_t which, const char *mount, KnownContainers *k) {
        DIR *d = opendir(path);
        const struct dirent *entry;
        size_t n = 0;
        int r = 0;

        if (!d) {
                if (errno != ENOENT && errno != ENOTDIR)
                        note_problem(k, path, strerror(errno));
                return 0;
        }
        k->has_stores |= stores[which].store == CONTAINER_STORE_DOCKER;
        while (r == 0 && n++ < CONTAINER_STATE_MAX && (entry = readdir(d))) {
                char file[PATH_MAX], shown[PATH_MAX];

                if (entry->d_name[0] == '.')
                        continue;
                (void)snprintf(file, sizeof(file), "%s/%s", entry->d_name, stores[which].file);
                if ((size_t)snprintf(shown, sizeof(shown), "%s/%s", path, file) < sizeof(shown))
                        r = read_file(dirfd(d), file, shown, stores[which].store, mount, k);
        }
        closedir(d);
        return r;
}

int container_state_read(const char *root, const char *mount, KnownContainers *ret) {
        KnownContainers k = KNOWN_CONTAINERS_NULL;
        int r = 0;

        for (size_t i = 0; container_state_folders[i] && r == 0; i++)
                for (size_t j = 0; j < ARRAY_SIZE(podman_files) && r == 0; j++) {
                        char path[PATH_MAX];

                        if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", root, container_state_folders[i],
                                             podman_files[j]) < sizeof(path))
                                r = read_file(AT_FDCWD, path, path, CONTAINER_STORE_PODMAN, mount, &k);
                }
        for (size_t i = 0; i < ARRAY_SIZE(stores) && r == 0; i++) {
                char path[PATH_MAX];

                if ((size_t)snprintf(path, sizeof(path), "%s%s", root, stores[i].folder) < sizeof(path))
                        r = read_folder(path, i, mount, &k);
        }
        if (r < 0) {
                known_containers_deinit(&k);
                return r;
        }
        *ret = k;
        return 0;
}
