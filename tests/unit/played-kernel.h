/*
 * A kernel that is played, for tests without privileges: perf event fds are memfds, whose rings can be mapped. They have ids, are
 * enabled and disabled, and count what a test lets occur; and the n-th call of a kind can fail. What uses it is linked
 * with supervisor_rig of tests/unit/meson.build.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAYED_FDS_MAX 512

typedef enum PlayedCall {
        PLAYED_OPEN,       /* perf_event_open(2) */
        PLAYED_IOCTL,      /* of a perf event */
        PLAYED_READ,       /* the same */
        PLAYED_MMAP,       /* the same */
        PLAYED_ALLOCATION, /* malloc(3) and others */
} PlayedCall;

/* What the kernel knows of one fd. */
typedef struct PlayedFd {
        bool is_open, is_on;
        struct perf_event_attr attr;
        int cpu, output; /* output: the carrier's fd; -1: none */
        uint64_t id, count;
        char filter[64];
} PlayedFd;

/* Nothing is open, and nothing fails. */
void played_start(void);
const PlayedFd *played_fd(int fd);
size_t played_count_open(void);
/* Each event that is enabled occurs n times on its CPU; records are not written. */
void played_occur(uint64_t n);

/* The n-th call from now on fails; 0: none does. */
void played_fail(PlayedCall call, unsigned n, int error);
/* It did. */
bool played_has_failed(void);
/* While a reader does what it was told, only what a switch can be refused fails: all else ends the process. */
void played_enter_reader(bool on);
