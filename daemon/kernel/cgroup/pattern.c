/*
 * All states of a pattern are followed at once, as bits, so "**" costs no backtracking and no folder is visited twice.
 * Globs are those of all other names (base/glob.h), but that a backslash is itself: systemd writes '-' in a unit's name as
 * "\x2d", and whoever copies such a name from systemctl means the backslash. There are no hidden files among cgroups, so '*'
 * takes a leading '.' too.
 */
#include "daemon/kernel/cgroup/pattern.h"

#include "config/text/words.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int refuse_name(const char *name, size_t at, const char *why, Explanation *e) {
        int r = refuse(e, REFUSED_INVALID, "bad-cgroup", "%s is not the path of a cgroup: %s", QUOTE(name), why);

        if (e)
                e->position = 1 + (unsigned)at;
        return r;
}

bool cgroup_is_glob(const char *name) {
        return strpbrk(name, "*?[") != NULL;
}

int cgroup_normalise(const char *name, char **ret, Explanation *e) {
        _cleanup_free_ char *path = NULL;
        size_t n = 0;

        if (!*name)
                return refuse_name(name, 0, "it is empty, and '/' is the name of the root", e);
        if (strlen(name) >= PATH_MAX)
                return refuse_name(name, PATH_MAX - 1, "it is longer than a path may be", e);
        for (size_t i = 0; name[i]; i++)
                if ((unsigned char)name[i] < 0x20)
                        return refuse_name(name, i, "it contains a control character", e);
        path = malloc(strlen(name) + 2);
        if (!path)
                return error_origin(-ENOMEM);
        for (size_t at = 0, length; name[at]; at += length) {
                at += strspn(name + at, "/");
                length = strcspn(name + at, "/");
                if (length == 0 || (length == 1 && name[at] == '.'))
                        continue;
                if (length == 2 && strncmp(name + at, "..", 2) == 0)
                        return refuse_name(name, at, "'..' could leave the hierarchy: write the path that it leads to", e);
                if (length > NAME_MAX)
                        return refuse_name(name, at, "one of its components is longer than a file name may be", e);
                path[n++] = '/';
                memcpy(path + n, name + at, length);
                n += length;
        }
        if (n == 0)
                path[n++] = '/';
        path[n] = '\0';
        *ret = TAKE_PTR(path);
        return 0;
}

/* As glob_compile(), but a backslash is itself. */
static int compile(const char *text, Pattern **ret, Explanation *e) {
        _cleanup_free_ char *escaped = malloc(2 * strlen(text) + 1);
        char *to = escaped;

        if (!escaped)
                return error_origin(-ENOMEM);
        for (; *text; text++) {
                if (*text == '\\')
                        *to++ = '\\';
                *to++ = *text;
        }
        *to = '\0';
        return glob_compile(escaped, ret, e);
}

void cgroup_pattern_deinit(CgroupPattern *p) {
        for (size_t i = 0; i < p->n_components; i++)
                pattern_free(p->globs[i]);
        pattern_free(p->container);
        free(p->text);
        *p = CGROUP_PATTERN_NULL;
}

static int split(CgroupPattern *p, Explanation *e) {
        char *rest = p->text, *component;
        int r;

        while ((component = strsep(&rest, "/"))) {
                if (!*component)
                        continue;
                if (p->n_components == CGROUP_COMPONENTS_MAX)
                        return refuse(e, REFUSED_INVALID, "bad-cgroup", "a cgroup's name has at most %d components",
                                      CGROUP_COMPONENTS_MAX);
                p->components[p->n_components++] = component;
                if (!cgroup_is_glob(component) || strcmp(component, "**") == 0)
                        continue;
                r = compile(component, &p->globs[p->n_components - 1], e);
                if (r != 0)
                        return r;
        }
        return 0;
}

const char *cgroup_container_id(const char *name) {
        const char *scheme = strstr(name, "://");

        return scheme ? scheme + strlen("://") : name;
}

static int container_pattern(const char *name, CgroupPattern *p, Explanation *e) {
        const char *id = cgroup_container_id(name);

        if (!*id || strchr(id, '/') || strlen(id) > NAME_MAX)
                return refuse(e, REFUSED_INVALID, "bad-container",
                              "%s is not a container: expected its id, at least 12 digits of it, its name in podman, docker, "
                              "runc, containerd, LXC or nspawn, or a glob of names", QUOTE(name));
        p->text = strdup("/**");
        if (!p->text)
                return error_origin(-ENOMEM);
        return cgroup_is_glob(id) ? compile(id, &p->container, e) : 0;
}

static int unit_pattern(const char *name, char **ret, Explanation *e) {
        static const char *const suffixes[] = { "service", "scope", "slice", "mount",  "socket", "swap",
                                                "automount", "device", "path", "target", "timer" };
        const char *suffix = strrchr(name, '.');
        bool has_suffix = false;

        for (size_t i = 0; suffix && i < ARRAY_SIZE(suffixes); i++)
                has_suffix |= strcmp(suffix + 1, suffixes[i]) == 0;
        if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX || strcmp(name, "**") == 0)
                return refuse(e, REFUSED_INVALID, "bad-unit",
                              "%s is not a systemd unit: expected nginx.service or a glob of one", QUOTE(name));
        for (const char *p = name; *p; p++)
                if ((unsigned char)*p <= ' ')
                        return refuse(e, REFUSED_INVALID, "bad-unit",
                                      "%s is not a systemd unit: none has a %s in its name", QUOTE(name),
                                      *p == ' ' ? "space" : "control character");
        return asprintf(ret, "/**/%s%s", name, has_suffix ? "" : ".service") < 0 ? error_origin(-ENOMEM) : 0;
}

int cgroup_pattern_init(CgroupPattern *p, CgroupNaming naming, const char *name, Explanation *e) {
        CgroupPattern pattern = { .naming = naming };
        int r = naming == CGROUP_BY_PATH        ? cgroup_normalise(name, &pattern.text, e)
                : naming == CGROUP_BY_CONTAINER ? container_pattern(name, &pattern, e)
                                                : unit_pattern(name, &pattern.text, e);

        if (r == 0)
                r = split(&pattern, e);
        if (r != 0)
                cgroup_pattern_deinit(&pattern);
        else
                *p = pattern;
        return r;
}

/* "**" may also stand for no component. */
static uint64_t skip_any(const CgroupPattern *p, uint64_t states) {
        for (size_t i = 0; i < p->n_components; i++)
                if (states >> i & 1 && strcmp(p->components[i], "**") == 0)
                        states |= UINT64_C(2) << i;
        return states;
}

uint64_t cgroup_pattern_begin(const CgroupPattern *p) {
        return skip_any(p, 1);
}

static bool component_is(const CgroupPattern *p, size_t i, const char *name) {
        return p->globs[i] ? glob_match(p->globs[i], name) : strcmp(p->components[i], name) == 0;
}

/* systemd puts a '_' before a unit's name that would look like a file of the kernel's. */
static bool component_matches(const CgroupPattern *p, size_t i, const char *name) {
        return component_is(p, i, name) || (p->naming == CGROUP_BY_UNIT && name[0] == '_' && component_is(p, i, name + 1));
}

uint64_t cgroup_pattern_step(const CgroupPattern *p, uint64_t states, const char *name) {
        uint64_t next = 0;

        for (size_t i = 0; i < p->n_components; i++) {
                if (!(states >> i & 1))
                        continue;
                if (strcmp(p->components[i], "**") == 0)
                        next |= UINT64_C(1) << i;
                else if (component_matches(p, i, name))
                        next |= UINT64_C(2) << i;
        }
        return skip_any(p, next);
}

uint64_t cgroup_pattern_walk(const CgroupPattern *p, const char *path) {
        uint64_t states = cgroup_pattern_begin(p);
        char name[NAME_MAX + 1];

        for (const char *at = path; *at && states; at += strcspn(at, "/")) {
                size_t n;

                at += strspn(at, "/");
                n = strcspn(at, "/");
                if (n == 0 || n > NAME_MAX)
                        continue;
                memcpy(name, at, n);
                name[n] = '\0';
                states = cgroup_pattern_step(p, states, name);
        }
        return states;
}
