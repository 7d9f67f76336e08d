/* A command is an array of fds, or a probe; one without either is the end. */
#include "daemon/closer.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/cleanup.h"

#define MAILBOX_SIZE 32768 /* two for each event that a daemon may have, fds and probe, and more */
#define URGENT_SIZE 1024

typedef struct CloserCommand {
        size_t n;
        Probe *probe; /* or NULL */
        _Atomic(size_t) *charged; /* or NULL */
        int fds[];
} CloserCommand;

void closer_hold(Closer *c) {
        pthread_mutex_lock(&c->lock);
        c->is_held = true;
        pthread_mutex_unlock(&c->lock);
}

void closer_go(Closer *c) {
        bool waits;

        pthread_mutex_lock(&c->lock);
        c->is_held = false;
        waits = c->waits;
        pthread_mutex_unlock(&c->lock);
        if (waits)
                pthread_cond_signal(&c->go);
}

/* Before each close, until then at most. */
static void closer_wait(Closer *c, const struct timespec *end) {
        int r = 0;

        pthread_mutex_lock(&c->lock);
        c->waits = true;
        while (c->is_held && r == 0)
                r = pthread_cond_timedwait(&c->go, &c->lock, end);
        c->waits = false;
        pthread_mutex_unlock(&c->lock);
        assert(r == 0 || r == ETIMEDOUT);
}

static void closer_close_one(Closer *c, const CloserCommand *command, size_t i, const struct timespec *end) {
        closer_wait(c, end);
        close_fd(command->fds[i]);
        atomic_fetch_sub_explicit(&c->n_pending, 1, memory_order_relaxed);
        if (command->charged)
                atomic_fetch_sub_explicit(command->charged, 1, memory_order_relaxed);
}

/* Between two others. */
static void closer_follow_urgent(Closer *c) {
        CloserCommand *command;

        while ((command = mailbox_pop(&c->urgent))) {
                const struct timespec end = nsec_timespec(clock_now(CLOCK_MONOTONIC) + c->held_most);

                for (size_t i = 0; i < command->n; i++) {
                        closer_close_one(c, command, i, &end);
                        atomic_fetch_sub_explicit(&c->n_urgent, 1, memory_order_relaxed);
                }
                free(command);
        }
}

/* False: the end. A probe goes behind all fds that were given before it, urgent or not. */
static bool closer_follow(Closer *c, CloserCommand *command) {
        const struct timespec end = nsec_timespec(clock_now(CLOCK_MONOTONIC) + c->held_most); /* of all that it names */
        bool go_on = command->n > 0 || command->probe;

        for (size_t i = 0; i < command->n; i++) {
                closer_follow_urgent(c);
                closer_close_one(c, command, i, &end);
        }
        closer_follow_urgent(c);
        if (command->probe)
                closer_wait(c, &end);
        probe_free(command->probe); /* whatever was open on it came before it */
        free(command);
        return go_on;
}

static int closer_run(void *userdata) {
        Closer *c = userdata;

        for (;;) {
                struct pollfd p[] = { { .fd = c->mailbox.fd, .events = POLLIN }, { .fd = c->urgent.fd, .events = POLLIN } };
                CloserCommand *command;
                int n = poll(p, 2, -1);

                assert(n >= 0 || errno == EINTR);
                mailbox_quiet(&c->urgent);
                mailbox_quiet(&c->mailbox);
                closer_follow_urgent(c);
                while ((command = mailbox_pop(&c->mailbox)))
                        if (!closer_follow(c, command))
                                return 0;
        }
}

int closer_start(Closer *c) {
        int r = mailbox_init(&c->mailbox, MAILBOX_SIZE);
        pthread_condattr_t monotonic;

        if (r == 0)
                r = mailbox_init(&c->urgent, URGENT_SIZE);

        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&c->go, &monotonic); /* glibc's never fail */
        pthread_condattr_destroy(&monotonic);
        if (r == 0)
                r = thread_start(&c->thread, THREAD_CLOSER, "closer", -1, closer_run, c);
        return r;
}

static bool closer_post(Closer *c, Mailbox *to, const int *fds, size_t n, _Atomic(size_t) *charged, Probe *probe) {
        CloserCommand *command;

        if (!c->thread.started)
                return false;
        command = malloc(sizeof(*command) + n * sizeof(*fds));
        if (!command)
                return false;
        command->n = n;
        command->probe = probe;
        command->charged = charged;
        if (n > 0)
                memcpy(command->fds, fds, n * sizeof(*fds));
        atomic_fetch_add_explicit(&c->n_pending, n, memory_order_relaxed);
        if (charged)
                atomic_fetch_add_explicit(charged, n, memory_order_relaxed);
        if (to == &c->urgent)
                atomic_fetch_add_explicit(&c->n_urgent, n, memory_order_relaxed);
        if (mailbox_post(to, command))
                return true;
        if (to == &c->urgent)
                atomic_fetch_sub_explicit(&c->n_urgent, n, memory_order_relaxed);
        atomic_fetch_sub_explicit(&c->n_pending, n, memory_order_relaxed);
        if (charged)
                atomic_fetch_sub_explicit(charged, n, memory_order_relaxed);
        free(command);
        return false;
}

static void closer_give(Closer *c, Mailbox *to, const int *fds, size_t n, _Atomic(size_t) *charged) {
        if (n == 0 || closer_post(c, to, fds, n, charged, NULL))
                return;
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
}

void closer_close(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged) {
        closer_give(c, &c->mailbox, fds, n, charged);
}

void closer_close_soon(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged) {
        closer_give(c, &c->urgent, fds, n, charged);
}

void closer_remove_probe(Closer *c, Probe *probe) {
        if (!probe)
                return;
        while (!closer_post(c, &c->mailbox, NULL, 0, NULL, probe)) {
                if (!c->thread.started) {
                        probe_free(probe);
                        return;
                }
                closer_go(c); /* whoever waits here holds it */
                sched_yield(); /* not before its fds, which are in the mailbox: it could not be removed */
        }
}

void closer_stop(Closer *c, void (*goes_on)(void *userdata, size_t n_left), void *userdata) {
        if (c->thread.started) {
                closer_go(c);
                while (!closer_post(c, &c->mailbox, NULL, 0, NULL, NULL))
                        sched_yield(); /* it is busy with what is in its mailbox, or memory comes back from there */
                do {
                        if (goes_on)
                                goes_on(userdata, atomic_load_explicit(&c->n_pending, memory_order_relaxed));
                } while (!thread_join_within(&c->thread, NSEC_PER_SEC));
        }
        mailbox_deinit(&c->mailbox);
        mailbox_deinit(&c->urgent);
}
