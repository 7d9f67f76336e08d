/* For probes: $arg1, $arg2, ... of a function in the registers and stack places that the kernel's fetch args know. */
#pragma once

#include <stddef.h>

/* Why it cannot be; ret_position: the byte of `args`. */
typedef enum FetchArgsRefusal {
        FETCH_ARGS_OK = 0,
        FETCH_ARGS_MACHINE, /* whose calls are not known here */
        FETCH_ARGS_ZERO,    /* they are counted from 1 */
        FETCH_ARGS_RETURN,  /* a user function that returns has its arguments no more */
        FETCH_ARGS_INSIDE,  /* nor has one that has gone on */
} FetchArgsRefusal;

/*
 * Integer and pointer arguments of 64-bit code by its ABI (System V AMD64, AAPCS64), as it is at the function's first
 * instruction. `event` is perfd's name of it; of what is neither kprobe nor uprobe nothing is changed. $retval, $stackN and
 * $arg* are the kernel's own words. machine: as uname(2) calls it. ret is malloc'ed.
 */
FetchArgsRefusal fetch_args_translate(const char *args, const char *event, const char *machine, char **ret, size_t *ret_position);
