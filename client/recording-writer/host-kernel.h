/* For host.c: what the kernel of this host says of itself. */
#pragma once

#include "client/recording-writer/writer.h"

/* The sections PMU_MAPPINGS, and BUILD_ID of the kernel. 0; PERFD_E_, -ENOMEM */
int host_add_pmus(perfd_recording_writer *w);
int host_add_kernel(perfd_recording_writer *w);
/* BUILD_ID of what is loaded, as /sys/module has it: called as records of it are, "[ext4]". 0; PERFD_E_, -ENOMEM */
int host_add_modules(perfd_recording_writer *w, const char *folder);
