/* For verbs that show what is in a recording: where it was made, and when. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * Whether what it says of its host, as far as it has been read, is not said of this one: names of this one's processes and kernel are none of
 * its. False too if it says nothing.
 */
bool recorded_host_is_another(perfd_recording *r);
/*
 * Behind the version of perfctl in the section VERSION, of a recording that was made by --host: it is of another host, also if that has the name
 * and the kernel of this one, as machines that were started from one image do.
 */
#define RECORDED_FROM_AFAR " of another host"

/*
 * For copies of stacks: EM_* of elf.h of x86-64 and arm64; EM_NONE of others, and of any of the other byte order. Without a word of it: this
 * machine's, MACHINE_OF_ITEM.
 */
#define MACHINE_OF_ITEM UINT32_MAX
uint32_t recorded_machine(perfd_recording *r);

/* The first and the last time of its samples, ns, as the section SAMPLE_TIME says them. False: it does not. */
bool recorded_times(perfd_recording *r, uint64_t *ret_first, uint64_t *ret_last);

/* CLOCK_REALTIME less the clock of the samples, ns, as the section CLOCK_DATA says it. False: it does not, as far as it has been read. */
bool recorded_wall_offset(perfd_recording *r, int64_t *ret);
