/*
 * For a thread that many producers feed through queues: an eventfd that is only written when the owner sleeps, so that
 * a push to a thread that is awake costs no system call; and a wait that costs its owner one.
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

/* What eventfd(2) and epoll_create1(2) say. */
int doorbell_init(Doorbell *d);
void doorbell_deinit(Doorbell *d);

/* Owner: an fd that ends its waits too, as long as it is readable. What epoll_ctl(2) says. */
int doorbell_watch(Doorbell *d, int fd);

/* Owner. */
void doorbell_arm(Doorbell *d);
void doorbell_disarm(Doorbell *d);
/*
 * Owner, armed: until it is rung, or the watched fd is readable, or for so many ns (UINT64_MAX: for ever). Disarmed
 * afterwards. It may end sooner, for a ring of long ago. True: the watched fd is readable.
 */
bool doorbell_wait(Doorbell *d, nsec_t timeout);
/* Any thread, after its push. */
void doorbell_ring(Doorbell *d);
