/*
 * For the recorder of another host, whose list of the kernel's symbols is not there: functions of that kernel that samples have, of the daemon, each as
 * a KSYMBOL before the first sample of a file that has it.
 */
#pragma once

#include "client/perfctl/names/kernel-names.h"

typedef struct Recorder Recorder;

typedef struct WrittenFunction {
        uint64_t start, end;
} WrittenFunction;

#define KERNEL_FUNCTIONS_SEEN ((size_t)8192) /* a power of two */

typedef struct KernelFunctions {
        KernelNames *names; /* NULL: nothing was asked for yet */
        WrittenFunction *list; /* in the file, by their starts */
        size_t n, room;
        uint64_t *seen; /* addresses that have been looked at: most are met again and again */
} KernelFunctions;

/* Those that have these addresses, before a sample of that event and time. 0, or what perfd_recording_writer_put() gave. */
int kernel_functions_put(Recorder *r, const uint64_t *addresses, size_t n, uint32_t event, uint64_t time);
/* Another file begins. */
void kernel_functions_renew(KernelFunctions *k);
void kernel_functions_deinit(KernelFunctions *k);
