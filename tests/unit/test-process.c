/* What /proc says of processes: of this one, which is known, and the texts that Linux writes on hosts of all kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/task/process.h"
#include "daemon/kernel/task/tasks.h"

static void test_cgroup_paths(void **state) {
        static const struct {
                const char *text, *path; /* NULL: none */
        } cases[] = {
                { "0::/user.slice/session-1.scope\n", "/user.slice/session-1.scope" },
                { "0::/\n", "/" },
                { "0::/a:b\n", "/a:b" },
                { "0::/no newline", "/no newline" },
                { "9:name=systemd:/s\n1:cpu:/c\n0::/unified\n", "/unified" },
                { "9:name=systemd:/s\n4:perf_event:/docker/x\n0::/unified\n", "/docker/x" },
                { "0::/unified\n4:net_cls,perf_event:/both\n", "/both" },
                { "4:perf_event,freezer:/first\n", "/first" },
                { "4:perf_events:/no\n5:myperf_event:/no\n", NULL },
                { "", NULL },
                { "\n", NULL },
                { "0:\n1:2\n::\n", NULL },
                { "10::/ten\n", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                size_t length = 0;
                const char *path = process_cgroup_path(cases[i].text, &length);

                if (!cases[i].path)
                        assert_null(path);
                else {
                        assert_non_null(path);
                        assert_int_equal(length, strlen(cases[i].path));
                        assert_memory_equal(path, cases[i].path, length);
                }
        }
}

typedef struct Other {
        sem_t named, seen;
        uint32_t tid;
} Other;

static void *run_other(void *userdata) {
        Other *o = userdata;

        prctl(PR_SET_NAME, "a thread\nof it");
        o->tid = (uint32_t)syscall(SYS_gettid);
        sem_post(&o->named);
        while (sem_wait(&o->seen) != 0)
                ;
        return NULL;
}

static void test_scan(void **state) {
        nsec_t before = clock_now(CLOCK_MONOTONIC), after;
        const ScannedProcess *own = NULL;
        bool found_main = false, found_other = false;
        char executable[4096] = "", comm[COMM_SIZE] = "";
        TaskScan *scan = NULL;
        Explanation e;
        pthread_t thread;
        Other o;

        sem_init(&o.named, 0, 0);
        sem_init(&o.seen, 0, 0);
        assert_int_equal(pthread_create(&thread, NULL, run_other, &o), 0);
        while (sem_wait(&o.named) != 0) /* until it has its name */
                ;
        assert_int_equal(process_scan(CLOCK_MONOTONIC, "/proc/does not exist", &scan, &e), 0);
        after = clock_now(CLOCK_MONOTONIC);
        sem_post(&o.seen);
        pthread_join(thread, NULL);

        assert_true(scan->begin >= before);
        for (size_t i = 0; i < scan->n; i++) {
                const ScannedProcess *p = &scan->processes[i];

                assert_true(p->time >= scan->begin && p->time <= after && p->start <= after);
                assert_true(p->n_threads > 0 && p->cgroup_id == 0);
                if (p->pid == (uint32_t)getpid())
                        own = p;
        }
        assert_non_null(own);
        assert_true(readlink("/proc/self/exe", executable, sizeof(executable) - 1) > 0);
        assert_string_equal(own->executable, executable);
        assert_int_equal(own->parent, getppid());
        assert_int_equal(own->uid, getuid());
        assert_true(own->start > 0);
        prctl(PR_GET_NAME, comm);
        for (size_t i = 0; i < own->n_threads; i++) { /* a sanitizer may have one of its own */
                const ScannedThread *t = &own->threads[i];

                if (t->tid == own->pid)
                        assert_string_equal(t->comm, comm);
                if (t->tid == o.tid)
                        assert_string_equal(t->comm, "a thread\nof it");
                found_main |= t->tid == own->pid;
                found_other |= t->tid == o.tid;
        }
        assert_true(found_main && found_other);
        task_scan_free(scan);
}

/* A child that is there until it is ended. */
static uint32_t begin_child(void) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (true)
                        pause();
        }
        return (uint32_t)pid;
}

static void end_child(uint32_t pid) {
        assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
        assert_int_equal(waitpid((pid_t)pid, NULL, 0), (pid_t)pid);
}

static bool is_descendant(TaskFamilies *f, nsec_t max_age, uint32_t pid) {
        const uint32_t own = (uint32_t)getpid();
        uint32_t *pids = NULL;
        bool is = false;
        size_t n = 0;

        assert_int_equal(tasks_descendants(f, max_age, &own, 1, &pids, &n, NULL), 0);
        for (size_t i = 0; i < n; i++)
                is = is || pids[i] == pid;
        free(pids);
        return is;
}

/* What is known is enough for who says so, and for nobody else. */
static void test_families(void **state) {
        const nsec_t hour = 3600 * NSEC_PER_SEC;
        TaskFamilies f = { .list = NULL };
        uint32_t first = begin_child(), second;
        nsec_t read_at;

        assert_true(is_descendant(&f, hour, first)); /* nothing was known */
        read_at = f.read_at;
        second = begin_child();
        assert_true(is_descendant(&f, hour, first));
        assert_false(is_descendant(&f, hour, second));
        assert_int_equal(f.read_at, read_at);
        assert_true(is_descendant(&f, 0, second));
        assert_true(f.read_at > read_at);
        end_child(first);
        assert_true(is_descendant(&f, hour, first));
        assert_false(is_descendant(&f, 1, first)); /* a nanosecond is over */
        end_child(second);
        task_families_deinit(&f);
        assert_null(f.list);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cgroup_paths),
                cmocka_unit_test(test_scan),
                cmocka_unit_test(test_families),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
