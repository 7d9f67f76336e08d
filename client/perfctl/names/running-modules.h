/* For this folder and recorder/: the modules that the kernel has loaded, and the files that they are of. */
#pragma once

#include <stdint.h>

typedef struct RunningModule {
        uint64_t start, length; /* bytes, of its code and what is behind it */
        const char *path;       /* of the file; "[ext4]" where it is not known */
} RunningModule;

/* Those whose place this user may read. 0; -ENOMEM; what take() returned that is not 0, which ends it */
int running_modules_read(int (*take)(void *userdata, const RunningModule *m), void *userdata);
