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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/kernel/task/process.h"

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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cgroup_paths),
                cmocka_unit_test(test_scan),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
