/* For the supervisor, at start: which system calls perfd goes on with. Main thread only, before there is another one. */
#pragma once

/*
 * For good: of bpf(2) this process keeps what runs a program that it has loaded, and nothing else: neither can it make another
 * one, nor find those of others. -errno: it is as before.
 */
int system_calls_end_bpf(void);
/*
 * For good, whoever perfd runs as: what it never calls fails with EPERM, and says so in the kernel's log: other programs, users,
 * namespaces and mounts, modules, other processes' memory, sockets but AF_UNIX and AF_NETLINK. Nothing can be gained by
 * execve(2) either (no_new_privs). -errno: this kernel has no such filter, or none is left; it is as before.
 */
int system_calls_reduce(void);
/* How many filters of this process the two above have made; whoever started it may have given it others. */
unsigned system_calls_count_filters(void);
