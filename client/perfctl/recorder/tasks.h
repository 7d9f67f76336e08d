/* For `record`: who was there before, as perf record says it. */
#pragma once

#include "client/perfctl/recorder/recorder.h"

/* COMM and MMAP2 of each task that may be recorded, of /proc; MMAP of the kernel and its modules, as far as this user may read where they are. 0; code of put. */
int recorder_put_tasks(Recorder *r);
