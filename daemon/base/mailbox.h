/*
 * Rare messages to a thread: pointers from one sender, asks (bits) from any thread, and an eventfd that the receiver polls. The
 * mailbox owns a message between post and pop; an ask is idempotent and needs no memory.
 */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/base/queue.h"

typedef struct Mailbox {
        Queue messages;
        _Atomic(uint32_t) asks;
        int fd;
        int overdue_fd; /* a timerfd(2), borrowed, that is set each time that the receiver is woken; -1: none */
} Mailbox;

#define MAILBOX_OVERDUE (5 * NSEC_PER_MSEC) /* so much later it expires, if the receiver does not set it again */
#define MAILBOX_NULL ((Mailbox){ .messages = { .slots = NULL }, .fd = -1, .overdue_fd = -1 })

/* -ENOMEM, or -errno of eventfd(2). */
int mailbox_init(Mailbox *m, size_t capacity);
void mailbox_deinit(Mailbox *m);

/* The sender. False, without a transfer of ownership, if the mailbox is full. */
bool mailbox_post(Mailbox *m, void *message);
/* Any thread. */
void mailbox_ask(Mailbox *m, uint32_t bits);

/* The receiver, after the fd became readable: resets the fd. Then take and pop until both return nothing. */
void mailbox_quiet(Mailbox *m);
uint32_t mailbox_take_asks(Mailbox *m);
void *mailbox_pop(Mailbox *m);
/* Whether there is a message or an ask that the receiver has not taken. Any thread. */
bool mailbox_has_news(const Mailbox *m);
/*
 * Sets the time, of CLOCK_MONOTONIC, by which the receiver should be awake again. Called by the receiver before it sleeps, and by
 * its monitor. The argument is the timer, because the monitor must not read the mailbox while that is recreated.
 */
void mailbox_set_overdue(int overdue_fd, nsec_t at);
/* The receiver, before it sleeps without a limit: it is late only if somebody has rung, or rings. */
void mailbox_clear_overdue(Mailbox *m);
