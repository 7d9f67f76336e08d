#include "tests/unit/played-threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "daemon/dispatcher/cycle.h"
#include "daemon/reader/cycle.h"
#include "tests/unit/played-kernel.h"

static struct {
        Dispatcher *dispatcher;
        bool is_stopped[PLAYED_CPUS];
        unsigned left[PLAYED_CPUS]; /* mails until it stops, with that one; 0: it does not */
        nsec_t ahead; /* of the host's clock */

        Reader *running;        /* NULL: none does anything */
        unsigned pauses[PLAYED_CPUS]; /* of a reader until it stops, with that one; 0: it does not */
        unsigned n_stopped;
        unsigned waits;         /* of main until the one that is in the middle goes on; 0: it does not */
        Reader *in_the_middle;  /* NULL: none */
        pthread_t thread;       /* of that one */
        ThreadKind kind;
        sem_t goes_on, is_over; /* for it; for the test's thread: it has stopped in the middle, or done what it was told */
        void (*happens)(void *userdata);
        void *userdata;
} threads;

void played_threads_start(Dispatcher *d) {
        assert_null(threads.in_the_middle);
        memset(threads.pauses, 0, sizeof(threads.pauses));
        threads.happens = NULL;
        threads.n_stopped = 0;
        played_take(0);
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

static void read_in(Reader *r) {
        bool is_starved;
        int error;

        threads.running = r;
        error = reader_read(r, &is_starved);
        assert(error == 0 && !is_starved);
        atomic_store(&r->is_at_end, r->has_stopped);
        threads.running = NULL;
}

static void *read_in_thread(void *userdata) {
        thread_become(threads.kind);
        read_in(userdata);
        threads.in_the_middle = NULL;
        (void)sem_post(&threads.is_over);
        return NULL;
}

/* Until it has done what it was told, or has stopped in the middle. */
static void wait_for_thread(void) {
        while (sem_wait(&threads.is_over) < 0)
                assert(errno == EINTR);
        if (!threads.in_the_middle)
                assert_int_equal(pthread_join(threads.thread, NULL), 0);
}

void played_run_reader(Reader *r) {
        played_enter_reader(true);
        played_rest();
        if (threads.pauses[r->slot] > 0) {
                assert_int_equal(sem_init(&threads.goes_on, 0, 0) + sem_init(&threads.is_over, 0, 0), 0);
                threads.kind = thread_kind;
                threads.in_the_middle = r;
                assert_int_equal(pthread_create(&threads.thread, NULL, read_in_thread, r), 0);
                wait_for_thread();
        } else
                read_in(r);
        played_rest();
        played_enter_reader(false);
        if (!threads.in_the_middle)
                (void)played_run_dispatcher();
}

/* The one that has stopped in the middle of it does what it was told last. */
static void go_on(void) {
        const uint32_t slot = threads.in_the_middle->slot;

        threads.pauses[slot] = 0;
        threads.is_stopped[slot] = false;
        played_enter_reader(true);
        (void)sem_post(&threads.goes_on);
        wait_for_thread();
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
        if (threads.in_the_middle == r)
                threads.is_stopped[r->slot] = true;
        else
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

void played_stop_in_pause(uint32_t slot, unsigned n, unsigned waits) {
        threads.pauses[slot] = n;
        threads.waits = waits;
}

unsigned played_n_stopped(void) {
        return threads.n_stopped;
}

void played_set_happening(void (*happens)(void *userdata), void *userdata) {
        threads.happens = happens;
        threads.userdata = userdata;
}

bool played_has_stopped(uint32_t slot) {
        return threads.is_stopped[slot];
}

void played_continue_reader(Reader *r) {
        if (threads.in_the_middle == r) {
                go_on();
                return;
        }
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

static void happen(void) {
        if (threads.happens)
                threads.happens(threads.userdata);
}

/* A reader's pause. */
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest) {
        Reader *r = threads.running;
        nsec_t now = clock_now(clock), end = timespec_nsec(*until);

        assert(r && flags == TIMER_ABSTIME && clock == CLOCK_MONOTONIC);
        threads.ahead += end > now ? end - now : 0;
        played_rest();
        happen();
        if (threads.pauses[r->slot] == 0 || --threads.pauses[r->slot] > 0)
                return 0;
        threads.running = NULL;
        threads.n_stopped++;
        (void)sem_post(&threads.is_over);
        while (sem_wait(&threads.goes_on) < 0)
                assert(errno == EINTR);
        threads.running = r;
        return 0;
}

/* While one has stopped in the middle. */
static void wait_for_reader(void) {
        happen();
        if (threads.waits > 0 && --threads.waits == 0)
                go_on();
}

/* Of main: others have their turn. */
int __real_sd_event_run(sd_event *e, uint64_t usec);
int __wrap_sd_event_run(sd_event *e, uint64_t usec);
int __wrap_sd_event_run(sd_event *e, uint64_t usec) {
        if (thread_kind == THREAD_MAIN)
                played_rest();
        return __real_sd_event_run(e, usec);
}

/* Whoever waits for nothing that can come has waited for as long as it may. */
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout) {
        int r;

        played_rest();
        if (threads.in_the_middle && !threads.running)
                wait_for_reader();
        r = __real_poll(fds, n, 0);

        if (r == 0 && timeout > 0)
                threads.ahead += (nsec_t)timeout * NSEC_PER_MSEC;
        return r;
}
