#include "tests/unit/played-threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <time.h>

#include "daemon/dispatcher/cycle.h"
#include "daemon/reader/cycle.h"
#include "tests/unit/played-kernel.h"

static struct {
        Dispatcher *dispatcher;
        bool is_stopped[PLAYED_CPUS];
        unsigned left[PLAYED_CPUS]; /* mails until it stops, with that one; 0: it does not */
        nsec_t ahead; /* of the host's clock */
} threads;

void played_threads_start(Dispatcher *d) {
        threads.dispatcher = d;
        for (size_t slot = 0; slot < PLAYED_CPUS; slot++)
                threads.left[slot] = threads.is_stopped[slot] = 0;
}

/* ---- the dispatcher ---------------------------------------------------------------------------------------------- */

bool played_run_dispatcher(void) {
        const ThreadKind before = thread_kind;
        bool any = dispatcher_has_work(threads.dispatcher);
        int r;

        played_enter_reader(true);
        thread_become(THREAD_DISPATCHER);
        r = sd_event_run(threads.dispatcher->event, 0);
        assert_true(r >= 0);
        assert_true(dispatcher_run_cycle(threads.dispatcher, false) >= 0);
        (void)dispatcher_ask(threads.dispatcher); /* readers, for their next turn */
        thread_become(before);
        played_enter_reader(false);
        return any || r > 0;
}

void __real_dispatcher_post(Dispatcher *d, DispatcherCommand *mail);
void __wrap_dispatcher_post(Dispatcher *d, DispatcherCommand *mail);
void __wrap_dispatcher_post(Dispatcher *d, DispatcherCommand *mail) {
        __real_dispatcher_post(d, mail);
        (void)played_run_dispatcher();
}

/* ---- readers ----------------------------------------------------------------------------------------------------- */

/* As its thread begins. */
int __wrap_reader_start(Reader *r, Snapshot *snapshot);
int __wrap_reader_start(Reader *r, Snapshot *snapshot) {
        r->snapshot = snapshot;
        r->has_stopped = false;
        atomic_store(&r->is_at_end, false);
        r->thread.started = true; /* as far as main knows */
        return 0;
}

void played_run_reader(Reader *r) {
        bool is_starved;

        played_enter_reader(true);
        assert_int_equal(reader_read(r, &is_starved), 0);
        assert_false(is_starved);
        atomic_store(&r->is_at_end, r->has_stopped);
        played_enter_reader(false);
        (void)played_run_dispatcher();
}

void __real_reader_post(Reader *r, ReaderCommand *mail);
void __wrap_reader_post(Reader *r, ReaderCommand *mail);
void __wrap_reader_post(Reader *r, ReaderCommand *mail) {
        const uint64_t sequence = mail->sequence;

        __real_reader_post(r, mail);
        if (threads.left[r->slot] > 0)
                threads.is_stopped[r->slot] |= --threads.left[r->slot] == 0;
        if (threads.is_stopped[r->slot])
                return;
        played_run_reader(r);
        assert_int_equal(r->acknowledged, sequence);
}

bool __wrap_reader_join_within(Reader *r, nsec_t most);
bool __wrap_reader_join_within(Reader *r, nsec_t most) {
        if (!atomic_load(&r->is_at_end))
                return false;
        r->thread.started = false;
        return true;
}

void played_stop_reader(uint32_t slot, unsigned n) {
        threads.left[slot] = n;
}

bool played_has_stopped(uint32_t slot) {
        return threads.is_stopped[slot];
}

void played_continue_reader(Reader *r) {
        threads.left[r->slot] = threads.is_stopped[r->slot] = 0;
        played_run_reader(r);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

int __real_clock_gettime(clockid_t clock, struct timespec *to);
int __wrap_clock_gettime(clockid_t clock, struct timespec *to);
int __wrap_clock_gettime(clockid_t clock, struct timespec *to) {
        int r = __real_clock_gettime(clock, to);

        if (clock == CLOCK_MONOTONIC)
                *to = nsec_timespec((nsec_t)to->tv_sec * NSEC_PER_SEC + (nsec_t)to->tv_nsec + threads.ahead);
        return r;
}

void played_let_pass(nsec_t time) {
        threads.ahead += time;
}

/* Whoever waits for nothing that can come has waited for as long as it may. */
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout) {
        int r = __real_poll(fds, n, 0);

        if (r == 0 && timeout > 0)
                threads.ahead += (nsec_t)timeout * NSEC_PER_MSEC;
        return r;
}
