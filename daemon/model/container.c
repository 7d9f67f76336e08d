/*
 * No runtime is asked: it may be gone, hang or lie, and a process that has ended has only its path left. Each component
 * of the path is looked at by itself, from the outside in, and what is found later is further inside and wins. So a
 * component that says nothing ("init.scope", "container", "payload") leaves who was found before it.
 */
#include "daemon/model/container.h"

#include "daemon/base/cleanup.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ID_LENGTH 64
#define COMPONENT_MAX 255

/* One component of a path, and what the ones before it were. */
typedef struct Component {
        char text[COMPONENT_MAX + 1];
        char parent[COMPONENT_MAX + 1];
} Component;

static bool is_hex(const char *text, size_t n) {
        return strspn(text, "0123456789abcdef") >= n; /* the zero at its end is none */
}

static bool is_id(const char *text) {
        return is_hex(text, ID_LENGTH) && text[ID_LENGTH] == '\0';
}

static bool has_prefix(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Where the suffix begins; NULL if the text has it not, or nothing else. */
static char *find_suffix(char *text, const char *suffix) {
        size_t n = strlen(text), n_suffix = strlen(suffix);

        return n > n_suffix && strcmp(text + n - n_suffix, suffix) == 0 ? text + n - n_suffix : NULL;
}

static int hex_value(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* systemd.unit(5): \x2d is a '-'. What would not print, or would be a path, stays as it is written. In place. */
static void unescape(char *text) {
        char *to = text;

        for (const char *p = text; *p; to++) {
                int high = p[0] == '\\' && p[1] == 'x' ? hex_value(p[2]) : -1;
                int low = high >= 0 ? hex_value(p[3]) : -1;
                int byte = low >= 0 ? high * 16 + low : 0;

                if (byte >= 0x20 && byte != 0x7f && byte != '/') {
                        *to = (char)byte;
                        p += 4;
                } else {
                        *to = *p++;
                }
        }
        *to = '\0';
}

/* A name that does not fit is not cut: half of it would be that of another one. */
static void set_container(ContainerName *ret, const char *id, const char *runtime) {
        if (!*id || strlen(id) >= sizeof(ret->id))
                return;
        (void)snprintf(ret->id, sizeof(ret->id), "%s", id);
        ret->runtime = runtime;
}

static void read_unit(const Component *c, ContainerName *ret) {
        static const char *const suffixes[] = { ".service", ".scope", ".slice", ".mount", ".socket", ".swap" };
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:-_.\\@";
        char text[sizeof(c->text)];

        /* systemd puts a '_' before what would look like a file of the kernel's */
        (void)snprintf(text, sizeof(text), "%s", c->text + (c->text[0] == '_'));
        if (text[strspn(text, letters)] != '\0')
                return;
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
                if (find_suffix(text, suffixes[i]))
                        (void)snprintf(ret->unit, sizeof(ret->unit), "%s", text);
}

/* 8-4-4-4-12, or 32 digits, up to the end of the component or to what a slice's name has behind it. */
static bool read_uid(const char *text, char ret[static 37]) {
        static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        char uid[sizeof(shape)] = "";
        size_t n = is_hex(text, 32) ? 32 : sizeof(shape) - 1;

        for (size_t i = 0; i < n; i++) {
                bool is_dash = n > 32 && shape[i] == '-';

                if (is_dash ? text[i] != '-' && text[i] != '_' : hex_value(text[i]) < 0)
                        return false;
                uid[i] = is_dash ? '-' : text[i];
        }
        if (text[n] != '\0' && text[n] != '.' && text[n] != ':')
                return false;
        memcpy(ret, uid, sizeof(uid));
        return true;
}

/* "pod<uid>" of cgroupfs, "kubepods-burstable-pod<uid>.slice" of systemd, which may stand below a slice of the kubelet. */
static void read_pod(const Component *c, ContainerName *ret) {
        const char *pod = strstr(c->text, "kubepods-");

        if (has_prefix(c->text, "pod") && read_uid(c->text + strlen("pod"), ret->pod_uid))
                return;
        for (pod = pod ? strstr(pod, "-pod") : NULL; pod; pod = strstr(pod + 1, "-pod"))
                if (read_uid(pod + strlen("-pod"), ret->pod_uid))
                        return;
}

/* By what stands before the id in "PREFIX-<id>.scope", or by the folder that a bare id lies in. */
static const char *find_runtime(const char *name, const ContainerName *so_far) {
        static const struct {
                const char *name, *runtime;
        } known[] = {
                { "docker", "docker" },      { "cri-containerd", "containerd" }, { "nerdctl", "containerd" },
                { "k8s.io", "containerd" },  { "default", "containerd" },        { "crio", "cri-o" },
                { "libpod", "podman" },      { "libpod-payload", "podman" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(name, known[i].name) == 0)
                        return known[i].runtime;
        return so_far->pod_uid[0] ? "kubernetes" : NULL;
}

/*
 * "<id>", "PREFIX-<id>", "PREFIX-<id>.scope", and "SLICE:PREFIX:<id>", which is what runc makes of a path for systemd
 * when it is told to use cgroupfs. conmon is the monitor beside a container, and the folder below libpod_parent is a pod.
 */
static void read_hex_container(const Component *c, ContainerName *ret) {
        char text[sizeof(c->text)], *end, *id, *prefix;

        (void)snprintf(text, sizeof(text), "%s", c->text);
        if (is_id(text)) {
                if (strcmp(c->parent, "libpod_parent") != 0)
                        set_container(ret, text, find_runtime(c->parent, ret));
                return;
        }
        end = find_suffix(text, ".scope");
        if (end)
                *end = '\0';
        if (strlen(text) <= ID_LENGTH + 1)
                return;
        id = text + strlen(text) - ID_LENGTH;
        if (!is_id(id) || (id[-1] != '-' && id[-1] != ':'))
                return;
        id[-1] = '\0';
        prefix = strrchr(text, ':');
        prefix = prefix ? prefix + 1 : text;
        if (!find_suffix(prefix, "-conmon"))
                set_container(ret, id, find_runtime(prefix, ret));
}

/* Runtimes whose containers have names. machine-qemu... is a virtual machine of libvirt. */
static void read_named_container(const Component *c, ContainerName *ret) {
        char text[sizeof(c->text)], *end;

        (void)snprintf(text, sizeof(text), "%s", c->text);
        if (has_prefix(text, "lxc.payload.")) {
                set_container(ret, text + strlen("lxc.payload."), "lxc");
        } else if (strcmp(c->parent, "lxc.payload") == 0 || strcmp(c->parent, "lxc") == 0) {
                set_container(ret, text, "lxc");
        } else if (has_prefix(text, "machine-") && (end = find_suffix(text, ".scope"))) {
                *end = '\0';
                unescape(text);
                if (!has_prefix(text, "machine-qemu-"))
                        set_container(ret, text + strlen("machine-"),
                                      has_prefix(text, "machine-lxc-") ? "lxc" : "systemd-nspawn");
        } else if (has_prefix(text, "systemd-nspawn@") && (end = find_suffix(text, ".service"))) {
                *end = '\0';
                unescape(text);
                set_container(ret, text + strlen("systemd-nspawn@"), "systemd-nspawn");
        }
}

void container_name_of(const char *cgroup_path, ContainerName *ret) {
        static const char deleted[] = " (deleted)"; /* /proc/PID/cgroup, of a cgroup that is removed */
        size_t length = strlen(cgroup_path);
        Component c = { .text = "" };

        *ret = (ContainerName){ .runtime = NULL };
        if (length >= strlen(deleted) && strcmp(cgroup_path + length - strlen(deleted), deleted) == 0)
                length -= strlen(deleted);
        for (size_t at = 0, n; at < length; at += n + 1) {
                n = strcspn(cgroup_path + at, "/");
                if (n > length - at)
                        n = length - at;
                if (n == 0 || n > COMPONENT_MAX) /* longer than NAME_MAX: not of this kernel */
                        continue;
                memcpy(c.text, cgroup_path + at, n);
                c.text[n] = '\0';
                read_unit(&c, ret);
                read_pod(&c, ret);
                read_hex_container(&c, ret);
                read_named_container(&c, ret);
                memcpy(c.parent, c.text, sizeof(c.parent));
        }
}
