/* For lists and attribution: what a cgroup's path says about who runs in it, by the naming schemes that are in use. Pure. */
#pragma once

#include <stdbool.h>

typedef struct ContainerName {
        char id[65];           /* 64 hex digits, or the name that the runtime gave it; "" if it is no container */
        const char *runtime;   /* "docker", "containerd", "cri-o", "podman", "lxc", "systemd-nspawn", "kubernetes" (unknown
                                  runtime below kubepods); static, NULL if none, or if the path does not tell */
        char pod_uid[37];      /* 8-4-4-4-12, also where the path has '_' for '-', or the 32 digits of a static pod; ""
                                  if no pod */
        char unit[256];        /* innermost systemd unit: "nginx.service", "session-3.scope"; "" if none */
} ContainerName;

/* path as in /proc/PID/cgroup or normalised. Always fills ret: with the innermost container, pod and unit. */
void container_name_of(const char *cgroup_path, ContainerName *ret);
