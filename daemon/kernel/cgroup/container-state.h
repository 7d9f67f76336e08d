/*
 * For kernel/cgroup/container-files.c: what a runtime calls its containers, out of the text of one of its files. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"

typedef enum ContainerStore {
        CONTAINER_STORE_PODMAN, /* also of CRI-O: containers.json of containers/storage, a list */
        CONTAINER_STORE_DOCKER, /* config.v2.json of one container */
        CONTAINER_STORE_RUNC,   /* state.json of one container */
        CONTAINER_STORE_CONTAINERD, /* config.json of one container, which runs: that of OCI runtimes, with annotations */
        _CONTAINER_STORE_MAX,
} ContainerStore;

typedef struct KnownContainer {
        ContainerStore store;
        char *id;
        char *name;   /* what people call it; never NULL */
        char *cgroup; /* of runc and containerd: its folder, with where the hierarchy is mounted; else NULL */
} KnownContainer;

typedef struct KnownContainers {
        KnownContainer *list;
        size_t n;
        bool has_some_only; /* a runtime here tells of those alone that run */
        bool has_stores; /* at least one runtime keeps its state here, and all that was there could be read */
        char problem[328]; /* the first file that could not be read, and why; "" */
} KnownContainers;

#define KNOWN_CONTAINERS_NULL ((KnownContainers){ .list = NULL })

enum {
        CONTAINER_STATE_SIZE_MAX = 8 << 20, /* bytes of a file */
        CONTAINER_STATE_DEPTH_MAX = 64,     /* JSON in one another */
        CONTAINER_STATE_MAX = 1 << 16,      /* containers of one host */
};

void known_containers_deinit(KnownContainers *k);
const char *container_store_name(ContainerStore store);

/*
 * Appends what the text says. REFUSED_INVALID "unknown-container": it is no JSON, or too much of it; then nothing is appended.
 * id: of containerd, where it is the name of the file's folder. mount: of the hierarchy, for cgroups. -ENOMEM.
 */
int container_state_parse(ContainerStore store, const char *id, const char *bytes, size_t length, const char *mount,
                          KnownContainers *k, Explanation *e);
