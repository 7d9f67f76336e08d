/* For metrics.c: the pod that a cgroup is of. Pure, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define POD_UID_SIZE 37

/* The UID of the innermost pod of Kubernetes in the path of a cgroup, or in a glob of paths, as 8-4-4-4-12. False: none is named. */
bool pod_of_cgroup(const char *path, char ret[static POD_UID_SIZE]);
