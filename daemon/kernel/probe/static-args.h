/* For probe.c: $arg1, $arg2, ... of a static probe in fetch args that a user wrote. The kernel knows them of functions only. */
#pragma once

#include "daemon/kernel/probe/dynamic.h"

/*
 * own: the probe's arguments as elf_probe_fetch_args() has them, "arg1=%di:u64 arg2=+8(%sp):s32", or NULL: none. $argN becomes the
 * place of argN, with its type if that is all that is fetched and the user gave none. Positions stay those of what the user wrote.
 * REFUSED_INVALID "bad-args": the site has no such argument, or the kernel cannot fetch it.
 */
int probe_static_args(const char *own, const ProbeArgs *args, ProbeArgs *ret, Explanation *e);
