/*
 * Queue, mailbox, doorbell and thread between real threads: nothing lost, nothing doubled, nothing out of order, no
 * wakeup missed. Waits are bounded, so that a wakeup that does not come is a failure and no hang. Under TSan this shows
 * that the hand-overs need no lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"

#define PATIENCE_MS 20000
#ifndef HAND_OVERS
#define HAND_OVERS 100000u
#endif

/* Not a cmocka assertion: those may not fail on another thread. */
static void wait_readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        assert(poll(&p, 1, PATIENCE_MS) == 1);
}

static bool is_readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

/* --- queue --- */

typedef struct Pair {
        Queue there, back;
        unsigned n;
} Pair;

static int run_echo(void *userdata) {
        Pair *p = userdata;

        for (unsigned i = 0; i < p->n;) {
                unsigned *item = queue_pop(&p->there);

                if (!item) {
                        sched_yield();
                        continue;
                }
                assert(*item == i); /* what was written before the push is seen after the pop */
                *item = ~i;
                i++;
                while (!queue_push(&p->back, item))
                        sched_yield();
        }
        return 4711;
}

static void test_queue(void **state) {
        static unsigned items[16];
        unsigned sent = 0, came = 0, in_use = 0;
        Pair p = { .n = 10 * HAND_OVERS };
        Thread t;

        assert_int_equal(queue_init(&p.there, 7), 0);
        assert_int_equal(queue_init(&p.back, 3), 0);
        assert_int_equal(thread_start(&t, THREAD_READER, "echo", -1, run_echo, &p), 0);
        while (came < p.n) {
                unsigned *back = queue_pop(&p.back);

                if (back) {
                        assert_ptr_equal(back, &items[came % 16]);
                        assert_int_equal(*back, ~came);
                        came++;
                        in_use--;
                }
                if (sent < p.n && in_use < 16) {
                        items[sent % 16] = sent;
                        if (queue_push(&p.there, &items[sent % 16])) {
                                sent++;
                                in_use++;
                        }
                } else if (!back)
                        sched_yield();
        }
        assert_int_equal(thread_join(&t), 4711);
        assert_int_equal(thread_join(&t), 0); /* it is joined already */
        assert_true(queue_is_empty(&p.there) && queue_is_empty(&p.back));
        queue_deinit(&p.there);
        queue_deinit(&p.there);
        queue_deinit(&p.back);
}

/* Capacity is exact at powers of two, and indexes may wrap. */
static void test_queue_bounds(void **state) {
        Queue q;
        int item[4];

        assert_int_equal(queue_init(&q, 4), 0);
        q.head = q.tail = SIZE_MAX - 5;
        for (unsigned round = 0; round < 10; round++) {
                assert_true(queue_is_empty(&q));
                assert_null(queue_pop(&q));
                for (unsigned i = 0; i < 4; i++)
                        assert_true(queue_push(&q, &item[i]));
                assert_false(queue_push(&q, &item[0]));
                assert_false(queue_is_empty(&q));
                for (unsigned i = 0; i < 4; i++)
                        assert_ptr_equal(queue_pop(&q), &item[i]);
        }
        queue_deinit(&q);
}

/* --- doorbell --- */

typedef struct Bell {
        Doorbell bell;
        Queue queues[2];
        _Atomic(unsigned) taken;
        unsigned limit[2]; /* how far each producer may run ahead, so that the owner sleeps often */
} Bell;

typedef struct Producer {
        Bell *bell;
        unsigned index;
        Thread thread;
} Producer;

static int run_producer(void *userdata) {
        static char message;
        Producer *p = userdata;
        Bell *b = p->bell;
        Queue *q = &b->queues[p->index];

        for (unsigned i = 0; i < HAND_OVERS; i++) {
                while (!queue_push(q, &message))
                        sched_yield();
                doorbell_ring(&b->bell);
                if (i % b->limit[p->index] == 0)
                        while (!queue_is_empty(q))
                                sched_yield();
        }
        return 0;
}

static void test_doorbell(void **state) {
        Bell b = { .limit = { 1, 7 } };
        Producer producers[2] = { { &b, 0 }, { &b, 1 } };
        unsigned taken = 0, slept = 0;
        int watched;

        assert_int_equal(doorbell_init(&b.bell), 0);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(queue_init(&b.queues[i], 8), 0);
                assert_int_equal(thread_start(&producers[i].thread, THREAD_READER, "producer", -1, run_producer, &producers[i]), 0);
        }
        while (taken < 2 * HAND_OVERS) {
                for (unsigned i = 0; i < 2; i++)
                        while (queue_pop(&b.queues[i]))
                                taken++;
                if (taken == 2 * HAND_OVERS)
                        break;
                doorbell_arm(&b.bell);
                if (queue_is_empty(&b.queues[0]) && queue_is_empty(&b.queues[1])) {
                        wait_readable(b.bell.waiter);
                        slept++;
                }
                assert_false(doorbell_wait(&b.bell, 0));
        }
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(thread_join(&producers[i].thread), 0);
                assert_true(queue_is_empty(&b.queues[i]));
                queue_deinit(&b.queues[i]);
        }
        assert_true(slept > 100);

        (void)doorbell_wait(&b.bell, 0); /* a producer may have rung behind the last one above */
        doorbell_ring(&b.bell); /* nobody sleeps: no system call, nothing to wake for */
        assert_false(is_readable(b.bell.waiter));
        doorbell_arm(&b.bell);
        doorbell_ring(&b.bell);
        doorbell_ring(&b.bell);
        assert_true(is_readable(b.bell.waiter));
        assert_false(doorbell_wait(&b.bell, UINT64_MAX));
        assert_false(is_readable(b.bell.waiter)); /* nothing was read, and nothing is left */
        doorbell_ring(&b.bell);
        assert_false(is_readable(b.bell.waiter)); /* a wait disarms */

        watched = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_int_equal(doorbell_watch(&b.bell, watched), 0);
        assert_false(doorbell_wait(&b.bell, NSEC_PER_MSEC));
        assert_int_equal(write(watched, &(uint64_t){ 1 }, sizeof(uint64_t)), sizeof(uint64_t));
        assert_true(doorbell_wait(&b.bell, UINT64_MAX));
        assert_true(doorbell_wait(&b.bell, NSEC_PER_SEC)); /* as long as it is readable */
        close_fd(watched);
        doorbell_deinit(&b.bell);
        doorbell_deinit(&b.bell);
}

/* --- mailbox --- */

typedef struct Post {
        Mailbox box, answers;
        _Atomic(unsigned) seen[2]; /* asks of each bit that were answered */
} Post;

/* Bits 0 and 1 are answered by a number, a message by the same message, NULL-terminated by bit 2. */
static int run_receiver(void *userdata) {
        Post *p = userdata;
        uint32_t asks = 0;
        unsigned expected = 0;

        while (!(asks & 4)) {
                unsigned *message;

                wait_readable(p->box.fd);
                mailbox_quiet(&p->box);
                asks = mailbox_take_asks(&p->box);
                for (unsigned i = 0; i < 2; i++)
                        if (asks & 1u << i)
                                atomic_fetch_add(&p->seen[i], 1);
                while ((message = mailbox_pop(&p->box))) {
                        assert(*message == expected++);
                        while (!mailbox_post(&p->answers, message))
                                sched_yield();
                }
        }
        return (int)expected;
}

typedef struct Asker {
        Post *post;
        unsigned bit;
        Thread thread;
} Asker;

static int run_asker(void *userdata) {
        Asker *a = userdata;

        for (unsigned i = 0; i < HAND_OVERS / 4; i++) {
                unsigned before = atomic_load(&a->post->seen[a->bit]);

                mailbox_ask(&a->post->box, 1u << a->bit);
                for (unsigned spin = 0; atomic_load(&a->post->seen[a->bit]) == before; spin++) {
                        assert(spin < 100000000);
                        sched_yield();
                }
        }
        return 0;
}

/* One sender of messages and two of asks, each of whom goes on only when he was heard. */
static void test_mailbox(void **state) {
        static unsigned messages[8];
        Post p = { .seen = { 0 } };
        Asker askers[2] = { { &p, 0 }, { &p, 1 } };
        Thread receiver;

        assert_int_equal(mailbox_init(&p.box, 8), 0);
        assert_int_equal(mailbox_init(&p.answers, 8), 0);
        assert_int_equal(thread_start(&receiver, THREAD_DISPATCHER, "receiver", -1, run_receiver, &p), 0);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(thread_start(&askers[i].thread, THREAD_READER, "asker", -1, run_asker, &askers[i]), 0);
        for (unsigned i = 0; i < HAND_OVERS; i++) {
                unsigned *answer;

                messages[i % 8] = i;
                assert_true(mailbox_post(&p.box, &messages[i % 8]));
                while (!(answer = mailbox_pop(&p.answers))) {
                        wait_readable(p.answers.fd);
                        mailbox_quiet(&p.answers);
                }
                assert_ptr_equal(answer, &messages[i % 8]);
        }
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(thread_join(&askers[i].thread), 0);
                assert_true(p.seen[i] >= HAND_OVERS / 4);
        }
        mailbox_ask(&p.box, 4);
        assert_int_equal(thread_join(&receiver), HAND_OVERS);
        mailbox_deinit(&p.box);
        mailbox_deinit(&p.box);
        mailbox_deinit(&p.answers);
}

static void test_mailbox_full(void **state) {
        Mailbox m;
        int message;

        assert_int_equal(mailbox_init(&m, 2), 0);
        assert_false(is_readable(m.fd));
        assert_true(mailbox_post(&m, &message) && mailbox_post(&m, &message));
        assert_false(mailbox_post(&m, &message));
        assert_true(is_readable(m.fd));
        mailbox_quiet(&m);
        assert_false(is_readable(m.fd));
        assert_non_null(mailbox_pop(&m));
        assert_true(mailbox_post(&m, &message));
        mailbox_ask(&m, 1);
        mailbox_quiet(&m);
        mailbox_ask(&m, 1); /* not yet taken: no second ring */
        assert_false(is_readable(m.fd));
        mailbox_ask(&m, 3);
        assert_true(is_readable(m.fd));
        assert_int_equal(mailbox_take_asks(&m), 3);
        assert_int_equal(mailbox_take_asks(&m), 0);
        mailbox_deinit(&m);
}

/* --- thread --- */

typedef struct Seen {
        pid_t tid;
        ThreadKind kind;
        char name[32];
        int n_cpus;
        unsigned cpu;
        bool is_blocked;
} Seen;

static int run_look(void *userdata) {
        Seen *s = userdata;
        cpu_set_t set;
        sigset_t mask;
        FILE *f = fopen("/proc/thread-self/comm", "re");

        s->tid = (pid_t)syscall(SYS_gettid);
        s->kind = thread_kind;
        assert(f && fgets(s->name, sizeof(s->name), f));
        fclose(f);
        assert(sched_getaffinity(0, sizeof(set), &set) == 0);
        s->n_cpus = CPU_COUNT(&set);
        assert(syscall(SYS_getcpu, &s->cpu, NULL, NULL) == 0);
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        s->is_blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGHUP) && sigismember(&mask, SIGCHLD);
        return -5;
}

static int count_threads(void) {
        DIR *d = opendir("/proc/self/task");
        int n = 0;

        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        closedir(d);
        return n;
}

static void test_thread(void **state) {
        Seen seen = { 0 };
        cpu_set_t set;
        sigset_t mask;
        Thread t = THREAD_NULL;
        int cpu = 0, before, tries = 0;

        assert_int_equal(thread_join(&t), 0);
        assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
        while (!CPU_ISSET(cpu, &set))
                cpu++;
        assert_int_equal(thread_start(&t, THREAD_READER, "a name that is too long", cpu, run_look, &seen), 0);
        assert_true(t.tid > 0 && t.tid != getpid());
        assert_int_equal(thread_join(&t), -5);
        assert_int_equal(seen.tid, t.tid);
        assert_int_equal(seen.kind, THREAD_READER);
        assert_string_equal(seen.name, "a name that is \n");
        assert_int_equal(seen.n_cpus, 1);
        assert_int_equal(seen.cpu, cpu);
        assert_true(seen.is_blocked);
        assert_int_equal(thread_kind, THREAD_ANY);
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        assert_false(sigismember(&mask, SIGTERM));

        before = count_threads();
        assert_int_equal(thread_start(&t, THREAD_READER, "nowhere", 8000, run_look, &seen), -EINVAL);
        /* pthread_join(3) returns a moment before the thread has left /proc; a sanitizer may have one of its own */
        for (; count_threads() > before && tries < PATIENCE_MS; tries++)
                poll(NULL, 0, 1);
        assert_true(tries < PATIENCE_MS);
        assert_int_equal(thread_join(&t), 0);
}

typedef struct Scheduled {
        ThreadPriority wanted;
        int result, policy, priority, nice, n_cpus;
} Scheduled;

static int run_scheduled(void *userdata) {
        Scheduled *s = userdata;
        struct sched_param param;
        cpu_set_t set;

        s->result = thread_set_priority(s->wanted, 5);
        s->policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
        assert(sched_getparam(0, &param) == 0);
        s->priority = param.sched_priority;
        s->nice = getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
        assert(sched_getaffinity(0, sizeof(set), &set) == 0);
        s->n_cpus = CPU_COUNT(&set);
        return 0;
}

static void test_priority(void **state) {
        Scheduled fifo = { { THREAD_FIFO, 1 }, 0 }, nice = { { THREAD_NICE, 7 }, 0 }, normal = { { THREAD_NORMAL, 0 }, 0 };
        Scheduled *const all[] = { &fifo, &nice, &normal };
        uint32_t cpus[CPU_SETSIZE];
        size_t n_cpus = 0;
        cpu_set_t set;

        assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
        for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &set))
                        cpus[n_cpus++] = cpu;
        for (size_t i = 0; i < 3; i++) {
                Thread t = THREAD_NULL;

                assert_int_equal(thread_start_on(&t, THREAD_READER, "scheduled", cpus, i < 2 ? n_cpus : 0, run_scheduled, all[i]), 0);
                assert_int_equal(thread_join(&t), 0);
                assert_int_equal(all[i]->n_cpus, n_cpus);
        }
        if (fifo.result == THREAD_E_LOWERED) { /* not permitted here */
                assert_int_equal(fifo.policy, SCHED_OTHER);
                assert_int_equal(fifo.nice, 5);
        } else {
                assert_int_equal(fifo.result, 0);
                assert_int_equal(fifo.policy, SCHED_FIFO);
                assert_int_equal(fifo.priority, 1);
        }
        assert_int_equal(nice.result, 0);
        assert_int_equal(nice.policy, SCHED_OTHER);
        assert_int_equal(nice.nice, 7);
        assert_int_equal(normal.result, 0);
        assert_int_equal(normal.nice, getpriority(PRIO_PROCESS, 0));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_queue),
                cmocka_unit_test(test_queue_bounds),
                cmocka_unit_test(test_doorbell),
                cmocka_unit_test(test_mailbox),
                cmocka_unit_test(test_mailbox_full),
                cmocka_unit_test(test_thread),
                cmocka_unit_test(test_priority),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
