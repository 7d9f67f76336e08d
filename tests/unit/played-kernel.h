/*
 * A kernel that is played, for tests without privileges: perf event fds are memfds, whose rings can be mapped. They have ids, are
 * enabled and disabled, and count what a test lets occur; and the n-th call of a kind can fail. What uses it is linked
 * with supervisor_rig of tests/unit/meson.build.
 *
 * CPUs can go and come: what is open on one that went is dead, as the kernel leaves it, and nothing can be opened there.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

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
        bool is_dead; /* its CPU went since it was opened */
        struct perf_event_attr attr;
        int cpu, output; /* output: the carrier's fd; -1: none */
        int leader;      /* the fd of its group's; -1: none, or itself */
        int pid;         /* or the fd of a cgroup */
        uint64_t id, count, running, lost; /* lost: of count, records that found the ring full */
        size_t ring_size; /* of a carrier */
        char filter[64];
} PlayedFd;

/* Nothing is open, and nothing fails. */
void played_start(void);
const PlayedFd *played_fd(int fd);
size_t played_count_open(void);
/* Each event that is enabled, and no carrier, occurs n times on its CPU. */
void played_occur(uint64_t n);
/* And a sample of each occurrence is written from now on, by those that have one of each: a leader, whose period is 1. */
void played_write_samples(bool on);
/* The same, while its ring is full: of who has PERF_FORMAT_LOST. */
void played_lose(uint64_t n);
/* The same, once before each ioctl(2) from now on, until false: how often that was. What is on all the time has that. */
uint64_t played_keep_occurring(bool on);

/* Each read(2) and ioctl(2) of a perf event takes so long from now on, on CLOCK_MONOTONIC, as of one with many children. */
void played_take(nsec_t time);
/* Who makes them lets others go on. */
void played_rest(void);
/* How many of them were made without a rest, at most, since played_take(). */
unsigned played_most_at_once(void);

#define PLAYED_CPU 4 /* of the first of two, which are online at the start */
#define PLAYED_CPUS 2

/* It is as it is said to be; the words of it are not heard before played_tell_cpu(). */
void played_set_cpu(int cpu, bool is_online);
bool played_cpu_is_online(int cpu);
/* The kernel says that it came or went; or that something was lost of what it said. */
void played_tell_cpu(int cpu, bool is_online);
void played_lose_words(void);

/* The n-th call from now on fails; 0: none does. */
void played_fail(PlayedCall call, unsigned n, int error);
/* It did. */
bool played_has_failed(void);
/* While a reader does what it was told, only what a switch can be refused fails: all else ends the process. */
void played_enter_reader(bool on);
