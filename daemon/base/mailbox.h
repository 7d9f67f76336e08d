/*
 * For cold messages to a thread: typed mails from one sender, asks (bits) from any, and one eventfd that the receiver
 * polls. A mail is owned by the mailbox between post and pop; an ask is idempotent and needs no memory.
 */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/base/queue.h"

typedef struct Mailbox {
        Queue mails;
        _Atomic(uint32_t) asks;
        int fd;
        int overdue_fd; /* a timerfd(2), borrowed, that is set each time that the receiver is woken; -1: none */
} Mailbox;

#define MAILBOX_OVERDUE (5 * NSEC_PER_MSEC) /* so much later it expires, if the receiver does not set it anew */
#define MAILBOX_NULL ((Mailbox){ .mails = { .slots = NULL }, .fd = -1, .overdue_fd = -1 })

/* -ENOMEM or what eventfd(2) says. */
int mailbox_init(Mailbox *m, size_t capacity);
void mailbox_deinit(Mailbox *m);

/* The one sender. False, and nothing moved, if the receiver is that far behind. */
bool mailbox_post(Mailbox *m, void *mail);
/* Any thread. */
void mailbox_ask(Mailbox *m, uint32_t bits);

/* The receiver, after its fd became readable: silences the fd, then take and pop until there is nothing. */
void mailbox_quiet(Mailbox *m);
uint32_t mailbox_take_asks(Mailbox *m);
void *mailbox_pop(Mailbox *m);
/* Any thread: there is something that the receiver has not taken. */
bool mailbox_has_news(const Mailbox *m);
/*
 * The receiver, before it sleeps, and whoever looks after it: CLOCK_MONOTONIC, when it should have been awake again. The timer
 * is named itself, because who looks after a receiver may not read its mailbox while that is made anew.
 */
void mailbox_set_overdue(int overdue_fd, nsec_t at);
