/*
 * For a thread that many producers feed through queues: an eventfd that is only written when the owner sleeps, so that
 * a push to a thread that is awake costs no system call.
 *
 *     owner:     doorbell_arm(), look into every queue once more, poll(2) the fd, doorbell_disarm()
 *     producer:  push, doorbell_ring()
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef struct Doorbell {
        int fd;
        atomic_bool armed;
} Doorbell;

#define DOORBELL_NULL ((Doorbell){ .fd = -1 })

/* What eventfd(2) says. */
int doorbell_init(Doorbell *d);
void doorbell_deinit(Doorbell *d);

/* Owner. */
void doorbell_arm(Doorbell *d);
void doorbell_disarm(Doorbell *d); /* also silences the fd */
/* Any thread, after its push. */
void doorbell_ring(Doorbell *d);
