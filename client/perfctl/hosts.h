/*
 * One verb on several hosts: --host given more than once. For each of them there is a process that does what perfctl does with that
 * host alone; its lines begin with the host's name. What runs on, as `watch` does, is merged by wall time (hosts/merge.h).
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* More than one, or one that is to be connected again. */
bool hosts_are_meant(const Perfctl *p);
/* Runs the verb on all of them, in a process for each, which ends with what `end` gives of the verb's status. The worst of these. */
int hosts_run(Perfctl *p, int (*end)(Perfctl *p, int code));
