/* For probe.c: $arg1, $arg2, ... of a function in fetch args that a user wrote, as the registers and stack places of its call. */
#pragma once

#include "config/event-name/event-name.h"
#include "daemon/kernel/probe/dynamic.h"

/*
 * Integer and pointer arguments of 64-bit code by its ABI (System V AMD64, AAPCS64), as they are at the function's first instruction.
 * machine: as uname(2) calls it. $retval, $stackN and $arg* are the kernel's own words, and so is $argN of a kretprobe (Linux 6.9),
 * and of a kprobe on another machine. Positions stay those of what the user wrote, which is not changed if it is refused.
 * REFUSED_INVALID "bad-args": there is no such argument, or not at this place; REFUSED_UNSUPPORTED "bad-args": not known of this machine.
 */
int probe_function_args(const EventName *name, const char *machine, ProbeArgs *args, Explanation *e);
