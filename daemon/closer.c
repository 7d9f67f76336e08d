/* A mail is an array of fds, or a probe; one without either is the end. */
#include "daemon/closer.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/cleanup.h"

#define MAILS 32768 /* two for each event that a daemon may have, fds and probe, and more */

typedef struct CloserMail {
        size_t n;
        Probe *probe; /* or NULL */
        _Atomic(size_t) *charged; /* or NULL */
        int fds[];
} CloserMail;

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

/* False: the end. */
static bool closer_follow(Closer *c, CloserMail *mail) {
        const struct timespec end = nsec_timespec(clock_now(CLOCK_MONOTONIC) + c->held_most); /* of all that it names */
        bool go_on = mail->n > 0 || mail->probe;

        for (size_t i = 0; i < mail->n; i++) {
                closer_wait(c, &end);
                close_fd(mail->fds[i]);
                atomic_fetch_sub_explicit(&c->n_pending, 1, memory_order_relaxed);
                if (mail->charged)
                        atomic_fetch_sub_explicit(mail->charged, 1, memory_order_relaxed);
        }
        if (mail->probe)
                closer_wait(c, &end);
        probe_free(mail->probe); /* whatever was open on it came before it */
        free(mail);
        return go_on;
}

static int closer_run(void *userdata) {
        Closer *c = userdata;

        for (;;) {
                struct pollfd p = { .fd = c->mailbox.fd, .events = POLLIN };
                CloserMail *mail;
                int n = poll(&p, 1, -1);

                assert(n >= 0 || errno == EINTR);
                mailbox_quiet(&c->mailbox);
                while ((mail = mailbox_pop(&c->mailbox)))
                        if (!closer_follow(c, mail))
                                return 0;
        }
}

int closer_start(Closer *c) {
        int r = mailbox_init(&c->mailbox, MAILS);
        pthread_condattr_t monotonic;

        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_cond_init(&c->go, &monotonic); /* glibc's never fail */
        pthread_condattr_destroy(&monotonic);
        if (r == 0)
                r = thread_start(&c->thread, THREAD_CLOSER, "closer", -1, closer_run, c);
        return r;
}

static bool closer_post(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged, Probe *probe) {
        CloserMail *mail;

        if (!c->thread.started)
                return false;
        mail = malloc(sizeof(*mail) + n * sizeof(*fds));
        if (!mail)
                return false;
        mail->n = n;
        mail->probe = probe;
        mail->charged = charged;
        if (n > 0)
                memcpy(mail->fds, fds, n * sizeof(*fds));
        atomic_fetch_add_explicit(&c->n_pending, n, memory_order_relaxed);
        if (charged)
                atomic_fetch_add_explicit(charged, n, memory_order_relaxed);
        if (mailbox_post(&c->mailbox, mail))
                return true;
        atomic_fetch_sub_explicit(&c->n_pending, n, memory_order_relaxed);
        if (charged)
                atomic_fetch_sub_explicit(charged, n, memory_order_relaxed);
        free(mail);
        return false;
}

void closer_close(Closer *c, const int *fds, size_t n, _Atomic(size_t) *charged) {
        if (n == 0 || closer_post(c, fds, n, charged, NULL))
                return;
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
}

void closer_remove_probe(Closer *c, Probe *probe) {
        if (!probe)
                return;
        while (!closer_post(c, NULL, 0, NULL, probe)) {
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
                while (!closer_post(c, NULL, 0, NULL, NULL))
                        sched_yield(); /* it is busy with what is in its mailbox, or memory comes back from there */
                do {
                        if (goes_on)
                                goes_on(userdata, atomic_load_explicit(&c->n_pending, memory_order_relaxed));
                } while (!thread_join_within(&c->thread, NSEC_PER_SEC));
        }
        mailbox_deinit(&c->mailbox);
}
