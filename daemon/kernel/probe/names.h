/*
 * For probe.c: whose a definition in tracefs is. Pure but for what reads /proc; any thread.
 *
 *     p:perfd_00012f5c3a7d91e0/p12_vfs_read vfs_read file=%di:x64
 *             \__owner_______/ \_event__/
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define PROBE_GROUP_SIZE 23 /* "perfd_", 16 digits, the zero */
#define PROBE_NAME_SIZE 64  /* MAX_EVENT_NAME_LEN: with the zero on new kernels, without it on old ones */

/*
 * Which process made a definition. In the group's name as 64 bits:
 *
 *     63      48 47                 22 21            0
 *     | spaces  |  start, ticks       |  pid          |
 *
 * Two processes with the same pid are started at least one clock tick apart, and 2^26 ticks are a week: what has both
 * the same is the same process.
 */
typedef struct ProbeOwner {
        uint32_t pid;    /* as its own pid namespace counts; at most 22 bits (PID_MAX_LIMIT) */
        uint32_t start;  /* low 26 bits of field 22 of /proc/PID/stat */
        uint16_t spaces; /* folded from the inodes of its pid and time namespaces, in which the others are true */
} ProbeOwner;

/* The calling process. REFUSED_UNSUPPORTED "kernel" if /proc does not say it. */
int probe_owner_self(ProbeOwner *ret, Explanation *e);
/*
 * Whether that process may still live. True whenever that cannot be known: it is in another pid namespace, or /proc
 * hides it.
 */
bool probe_owner_lives(const ProbeOwner *o, const ProbeOwner *self);
void probe_owner_group(const ProbeOwner *o, char ret[static PROBE_GROUP_SIZE]);
/* False if it is no group of a perfd. */
bool probe_owner_parse(const char *group, size_t n, ProbeOwner *ret);
/* /proc/PID/stat: false if it is none, or that of a process that is dead and only waited for. */
bool probe_owner_parse_stat(const char *stat, uint32_t *ret_pid, uint32_t *ret_start);

/*
 * An event's name in tracefs: kind ('p', 'r'), id, and where they are not 0 attempt and site, then as much of the place
 * as there is room for: "p12_vfs_read", "p12_3_libc_setjmp", "p12v1_vfs_read". Letters, digits and underscores.
 */
void probe_name(char kind, uint32_t id, unsigned attempt, size_t site, const char *place,
                char ret[static PROBE_NAME_SIZE]);

/* A line of kprobe_events, uprobe_events or dynamic_events. The pointers are into it. */
typedef struct ProbeLine {
        char kind;          /* 'p', 'r'; 'e', 's', 't', 'f' of others */
        unsigned maxactive; /* "r16:" */
        const char *group, *name;
        size_t n_group, n_name;
} ProbeLine;

/* False if it has no group and name. `length` is without the newline. */
bool probe_line_parse(const char *line, size_t length, ProbeLine *ret);

/*
 * The line of a definition in kprobe_profile or uprobe_profile, which name the event but not its group. So both texts
 * are compared: the n-th definition of that name has the n-th line of that name. False if it is not there, or if the
 * two do not have equally many, because someone else changed them in between.
 */
bool probe_profile_find(const char *events, const char *profile, bool is_kernel, const char *group, const char *name,
                        uint64_t *ret_hits, uint64_t *ret_missed);
