/*
 * For kernel/cgroup/container.c: what runtimes on this host call their containers, out of the state that they keep in files.
 * A runtime is never asked: it may hang. Main thread only; the parser from any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"

typedef enum ContainerStore {
        CONTAINER_STORE_PODMAN, /* also of CRI-O: containers.json of containers/storage, a list */
        CONTAINER_STORE_DOCKER, /* config.v2.json of one container */
        CONTAINER_STORE_RUNC,   /* state.json of one container */
        _CONTAINER_STORE_MAX,
} ContainerStore;

typedef struct KnownContainer {
        ContainerStore store;
        char *id;
        char *name;   /* what people call it; never NULL */
        char *cgroup; /* of runc: its folder, with where the hierarchy is mounted; else NULL */
} KnownContainer;

typedef struct KnownContainers {
        KnownContainer *list;
        size_t n;
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
 * mount: of the hierarchy, for the cgroups of runc. -ENOMEM.
 */
int container_state_parse(ContainerStore store, const char *bytes, size_t length, const char *mount, KnownContainers *k,
                          Explanation *e);
/*
 * Of the host whose files are below `root`: "" in production. A file that is no JSON costs its own containers alone, and is
 * told in `problem`. -ENOMEM.
 */
int container_state_read(const char *root, const char *mount, KnownContainers *ret);

/* Folders, below `root`, in which a file is replaced when podman makes, renames or removes a container; ends with NULL. */
extern const char *const container_state_folders[];
bool container_state_is_file(const char *name);
