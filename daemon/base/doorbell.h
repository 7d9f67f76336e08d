/*
 * Wakes a thread that many producers feed through queues: an eventfd that is written only while the owner sleeps, so that a push
 * to a running thread needs no system call. A wait of the owner needs one.
 *
 *     owner:     doorbell_arm(), look into every queue once more, doorbell_wait()
 *     producer:  push, doorbell_ring()
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/base/clock.h"

typedef struct Doorbell {
        int fd;     /* eventfd, written and never read: each write is an edge */
        int waiter; /* epoll */
        atomic_bool armed;
} Doorbell;

#define DOORBELL_NULL ((Doorbell){ .fd = -1, .waiter = -1 })

/* -errno of eventfd(2) or epoll_create1(2). */
int doorbell_init(Doorbell *d);
void doorbell_deinit(Doorbell *d);

/* Owner: while this fd is readable, it ends waits too. -errno of epoll_ctl(2). */
int doorbell_watch(Doorbell *d, int fd);

/* Owner. */
void doorbell_arm(Doorbell *d);
void doorbell_disarm(Doorbell *d);
/*
 * Owner, armed: waits until doorbell_ring(), until the watched fd is readable, or for `timeout` ns (UINT64_MAX: without limit), and
 * disarms. May return early because of an earlier ring. True: the watched fd is readable.
 */
bool doorbell_wait(Doorbell *d, nsec_t timeout);
/* Any thread, after its push. */
void doorbell_ring(Doorbell *d);
