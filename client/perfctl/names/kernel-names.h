/*
 * For names of live samples: functions of a kernel whose list of symbols cannot be read here, by asking the daemon: of another host, or for who
 * may not see where they lie. Each function is asked for once.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct KernelNames KernelNames;

/* It connects a second time when it is asked for the first time, since the connection of `p` has a stream; `p` lives longer. */
KernelNames *kernel_names_new(const Perfctl *p);
/* NULL. */
KernelNames *kernel_names_free(KernelNames *k);
/* What is asked for soon, and not known yet, in one request. What goes wrong is said once, and then all is unknown. */
void kernel_names_want(KernelNames *k, const uint64_t *addresses, size_t n);
/* What is known of the function that has the address; texts as below. False: there is none. */
typedef struct KernelFunction {
        uint64_t start, end;
        const char *symbol, *dso; /* "[kernel.kallsyms]", "[ext4]" */
} KernelFunction;
bool kernel_names_function(KernelNames *k, uint64_t address, KernelFunction *ret);
/* symbol, dso and offset of a frame, whose texts live as long as `k`. False: there is no function, and *frame stays as it was. */
bool kernel_names_find(KernelNames *k, uint64_t address, perfd_frame *frame);
