/*
 * For kernel/cgroup/container.c: what runtimes on this host call their containers, out of the state that they keep in files.
 * A runtime is never asked: it may hang. Files of users, as those of rootless podman, are not read: anybody could give his
 * container the name of another's, and a home may lie on a server that does not answer. Main thread only.
 */
#pragma once

#include "config/file-stamp.h"
#include "daemon/kernel/cgroup/container-state.h"

/*
 * What was read last, which is still so while no file has changed. Nothing is kept of files that could not all be read, and of
 * files that had changed at the time: they may change again within one tick of the kernel's clock, by which they are stamped.
 */
typedef struct ContainerFiles {
        KnownContainers known;
        FileStamps stamps;
        bool is_kept;
        unsigned n_reads;
} ContainerFiles;

#define CONTAINER_FILES_NULL ((ContainerFiles){ .is_kept = false })

void container_files_deinit(ContainerFiles *f);
/*
 * Of the host whose files are below `root`: "" in production. A file that is no JSON costs its own containers alone, and is
 * told in `problem`. *ret is borrowed until the next call; the caller may change the order of its list. mount: see
 * container_state_parse(); f is for one root and one mount. -ENOMEM.
 */
int container_files_read(ContainerFiles *f, const char *root, const char *mount, KnownContainers **ret);

/* Folders, below `root`, in which a file is replaced when podman makes, renames or removes a container; ends with NULL. */
extern const char *const container_state_folders[];
bool container_state_is_file(const char *name);
