/* What the kernel of this host was found to have at the start. Main thread only. */
#pragma once

#include <stdbool.h>

#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/kernel/privileges/privileges.h"
#include "daemon/kernel/symbol/kernel-symbol-index.h"
#include "daemon/kernel/tracefs/tracing.h"

typedef struct Host {
        Tracing tracing;
        KernelSymbolIndex kernel_symbols;
        CgroupHierarchy cgroups;     /* path NULL: not looked for yet */
        bool is_in_pid_namespace;    /* other than the kernel's own */
        PrivilegesReport privileges; /* .keep is asked for by an option */
} Host;
