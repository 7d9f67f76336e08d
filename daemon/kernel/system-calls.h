/* For the supervisor, at start: which system calls perfd goes on with. Main thread only, before there is another one. */
#pragma once

/*
 * For good: of bpf(2) this process keeps what runs a program that it has loaded, and nothing else: neither can it make another
 * one, nor find those of others. -errno: it is as before.
 */
int system_calls_end_bpf(void);
