/* The thread and process of an item. Valid during the callback of the item. Pure types. */
#pragma once

#include "declarations.h"
#include "field.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_process {
        uint32_t pid;
        uint32_t parent;       /* pid of its parent; 0: not known */
        bool has_uid;          /* uid is known: its own when perfd first saw it, or its parent's */
        uint32_t uid;
        uint64_t start;        /* ns of the stream's clock, to 10 ms if it is older than the stream; 0: not known */
        perfd_text executable; /* path, as the process itself sees it; empty: a kernel thread, or not known */
        perfd_text cgroup;     /* path in the hierarchy that perf events use; empty: not known */
        uint64_t cgroup_id;    /* 0: not known */
        const char *container; /* id; this and what follows: what the cgroup's path says, "" if nothing */
        const char *runtime;   /* "docker", "containerd", "cri-o", "podman" */
        const char *pod_uid;   /* Kubernetes */
        const char *unit;      /* systemd: "nginx.service" */
} perfd_process;

typedef struct perfd_task {
        uint32_t pid, tid;
        perfd_text comm;
        uint64_t since; /* ns: comm holds since then; 0: since before the stream knew of it */
        const perfd_process *process; /* never NULL */
} perfd_task;

PERFD_END_DECLARATIONS
