/*
 * JSON is read as the YAML that it is, by the library that reads the configuration: events, not a tree, so a file costs no
 * more memory than its longest text. Anchors, aliases and tags are no JSON and are refused. Files are the runtimes' own, but
 * labels and environments in them are anybody's.
 */
#include "daemon/kernel/cgroup/container-state.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define KEY_MAX 48 /* of a key that matters, with its zero */

const char *container_store_name(ContainerStore store) {
        static const char *const names[] = { [CONTAINER_STORE_PODMAN] = "podman", [CONTAINER_STORE_DOCKER] = "docker",
                                             [CONTAINER_STORE_RUNC] = "runc",
                                             [CONTAINER_STORE_CONTAINERD] = "containerd" };

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

/* Annotations by which containerd's CRI plugin, and nerdctl, say what people call a container. */
enum {
        NOTE_CONTAINER,
        NOTE_POD,
        NOTE_NAMESPACE,
        NOTE_POD_UID,
        NOTE_NERDCTL,
        _NOTE_MAX,
};

static const char *const annotations[] = {
        [NOTE_CONTAINER] = "io.kubernetes.cri.container-name",      [NOTE_POD] = "io.kubernetes.cri.sandbox-name",
        [NOTE_NAMESPACE] = "io.kubernetes.cri.sandbox-namespace", [NOTE_POD_UID] = "io.kubernetes.cri.sandbox-uid",
        [NOTE_NERDCTL] = "nerdctl/name",
};

/* Where the reader is. Of the mapping that is a container, `key` is the last key; of a mapping in it, `inner` is. */
typedef struct StateReader {
        yaml_parser_t parser;
        ContainerStore store;
        const char *mount;
        KnownContainers *known;
        unsigned depth, depth_of_container; /* in how many mappings and lists */
        bool is_value[CONTAINER_STATE_DEPTH_MAX + 1], is_map[CONTAINER_STATE_DEPTH_MAX + 1]; /* by depth */
        char key[KEY_MAX], inner[KEY_MAX];
        char *id, *name, *cgroup;
        char *notes[_NOTE_MAX];
} StateReader;

static int refuse_state(const StateReader *r, const char *why, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "unknown-container", "it is not JSON as %s writes it: line %zu, column %zu: %s",
                      container_store_name(r->store), r->parser.mark.line + 1, r->parser.mark.column + 1, why);
}

static void forget_container(StateReader *r) {
        free(TAKE_PTR(r->id));
        free(TAKE_PTR(r->name));
        free(TAKE_PTR(r->cgroup));
        for (size_t i = 0; i < _NOTE_MAX; i++)
                free(TAKE_PTR(r->notes[i]));
}

/* A text with a zero byte in it is nobody's name. */
static int keep_text(char **to, const yaml_event_t *v) {
        if (*to || strlen((const char *)v->data.scalar.value) != v->data.scalar.length || v->data.scalar.length == 0)
                return 0;
        *to = strdup((const char *)v->data.scalar.value);
        return *to ? 0 : error_origin(-ENOMEM);
}

/* As CRI-O and docker name those of a kubelet, where the name in the pod would be that of many. */
static int name_by_annotations(StateReader *r) {
        const char *uid = r->notes[NOTE_POD_UID];

        if (r->notes[NOTE_NERDCTL])
                r->name = TAKE_PTR(r->notes[NOTE_NERDCTL]);
        else if (r->notes[NOTE_POD] &&
                 asprintf(&r->name, "k8s_%s_%s_%s%s%s", r->notes[NOTE_CONTAINER] ? r->notes[NOTE_CONTAINER] : "POD",
                          r->notes[NOTE_POD], r->notes[NOTE_NAMESPACE] ? r->notes[NOTE_NAMESPACE] : "", uid ? "_" : "",
                          uid ? uid : "") < 0) {
                r->name = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        return 0;
}

static bool is_long_id(const char *id) {
        return strlen(id) == 64 && id[strspn(id, "0123456789abcdef")] == '\0';
}

/* One that has no name is known by its id. What is no container ends unseen: docker's folder may have others' in it. */
static int add_container(StateReader *r) {
        KnownContainers *k = r->known;
        KnownContainer *more, c = { .store = r->store };

        if (r->store == CONTAINER_STORE_CONTAINERD) {
                const int named = name_by_annotations(r);

                if (named < 0)
                        return named;
        }
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
        if (r->store != CONTAINER_STORE_CONTAINERD || !is_long_id(c.id)) /* which the cgroup is called by, wherever it is */
                c.cgroup = TAKE_PTR(r->cgroup);
        if (c.name && c.name[0] == '/') /* as docker writes it */
                memmove(c.name, c.name + 1, strlen(c.name));
        more[k->n++] = c;
        forget_container(r);
        return c.name ? 0 : error_origin(-ENOMEM);
}

static int read_annotation(StateReader *r, const yaml_event_t *v) {
        for (size_t i = 0; i < _NOTE_MAX; i++)
                if (strcmp(r->inner, annotations[i]) == 0)
                        return keep_text(&r->notes[i], v);
        return 0;
}

/* Of an OCI runtime's configuration: "linux": { "cgroupsPath": "/default/web" }; of systemd's driver it is no path. */
static int read_oci_cgroup(StateReader *r, const yaml_event_t *v) {
        const char *text = (const char *)v->data.scalar.value;

        if (r->cgroup || strcmp(r->inner, "cgroupsPath") != 0 || text[0] != '/' || strlen(text) != v->data.scalar.length)
                return 0;
        if (asprintf(&r->cgroup, "%s%s", r->mount, text) < 0) {
                r->cgroup = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        return 0;
}

/* A value of the container itself, or one level below: podman has a list of names, runc a mapping of paths. */
static int read_value(StateReader *r, const yaml_event_t *v) {
        const char *text = (const char *)v->data.scalar.value;
        size_t n = strlen(r->mount);

        if (r->depth == r->depth_of_container && r->store != CONTAINER_STORE_CONTAINERD &&
            strcmp(r->key, r->store == CONTAINER_STORE_DOCKER ? "ID" : "id") == 0)
                return keep_text(&r->id, v);
        if (r->depth == r->depth_of_container && r->store == CONTAINER_STORE_DOCKER && strcmp(r->key, "Name") == 0)
                return keep_text(&r->name, v);
        if (r->depth != r->depth_of_container + 1)
                return 0;
        if (r->store == CONTAINER_STORE_PODMAN && strcmp(r->key, "names") == 0)
                return keep_text(&r->name, v);
        if (r->store == CONTAINER_STORE_CONTAINERD && strcmp(r->key, "annotations") == 0)
                return read_annotation(r, v);
        if (r->store == CONTAINER_STORE_CONTAINERD && strcmp(r->key, "linux") == 0)
                return read_oci_cgroup(r, v);
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
        else if (r->depth == r->depth_of_container + 1)
                (void)snprintf(r->inner, sizeof(r->inner), "%s", (const char *)v->data.scalar.value);
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
        if (r->depth == r->depth_of_container + 1)
                r->inner[0] = '\0';
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

int container_state_parse(ContainerStore store, const char *id, const char *bytes, size_t length, const char *mount,
                          KnownContainers *k, Explanation *e) {
        StateReader r = { .store = store,
                          .mount = mount,
                          .known = k,
                          .depth_of_container = store == CONTAINER_STORE_PODMAN ? 2 : 1 };
        size_t n = k->n;
        int error;

        if (length > CONTAINER_STATE_SIZE_MAX)
                return refuse(e, REFUSED_INVALID, "unknown-container", "it has %zu bytes, more than the limit of %d",
                              length, CONTAINER_STATE_SIZE_MAX);
        if (store == CONTAINER_STORE_CONTAINERD && !(r.id = strdup(id)))
                return error_origin(-ENOMEM);
        if (!yaml_parser_initialize(&r.parser)) {
                forget_container(&r);
                return error_origin(-ENOMEM);
        }
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, length);
        error = read_events(&r, e);
        yaml_parser_delete(&r.parser);
        forget_container(&r);
        if (error != 0)
                forget_from(k, n);
        return error;
}
