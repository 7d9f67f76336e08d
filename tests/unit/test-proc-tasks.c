/* Who was there when a recording began: each task and mapping once, and none of a process that has been written already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/perfctl/recorder/proc-tasks.h"

typedef struct Found {
        ProcTasks *of; /* which is told what was given, as a recorder does */
        uint32_t pid;
        unsigned n_comms, n_mappings, n_others;
        int code;
} Found;

static int take_comm(void *userdata, uint32_t pid, uint32_t tid, perfd_text comm) {
        Found *f = userdata;

        proc_tasks_set_written(f->of, pid);
        assert_true(comm.length > 0 || pid != f->pid);
        f->n_comms += pid == f->pid && tid == pid;
        f->n_others += pid != f->pid;
        return f->code;
}

static int take_mapping(void *userdata, const RunningMapping *mapping) {
        Found *f = userdata;

        assert_int_equal(strlen(mapping->mapping.path.bytes), mapping->mapping.path.length);
        f->n_mappings += mapping->mapping.pid == f->pid;
        return f->code;
}

static int put(ProcTasks *e, Found *f) {
        const RunningTasks to = { .userdata = f, .comm = take_comm, .mapping = take_mapping };

        f->of = e;
        f->n_comms = f->n_mappings = f->n_others = 0;
        return proc_tasks_put(e, &to);
}

/* A child that is gone when it is written. */
static void test_gone(void **state) {
        const pid_t child = fork();
        Found f = { .pid = (uint32_t)child };
        ProcTasks e = { .list = NULL };

        assert_true(child >= 0);
        if (child == 0) {
                pause();
                _exit(0);
        }
        proc_tasks_read(&e, false);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(put(&e, &f), 0);
        assert_int_equal(f.n_comms, 1);
        assert_true(f.n_mappings > 1 && f.n_others > 0);
        proc_tasks_deinit(&e);

        proc_tasks_read(&e, false);
        f.pid = (uint32_t)getpid();
        proc_tasks_set_written(&e, UINT32_MAX);
        proc_tasks_set_written(&e, f.pid);
        assert_int_equal(put(&e, &f), 0);
        assert_int_equal(f.n_comms + f.n_mappings, 0);
        assert_true(f.n_others > 0);
        proc_tasks_deinit(&e);
}

static void test_refused(void **state) {
        Found f = { .pid = (uint32_t)getpid(), .code = -7 };
        ProcTasks e = { .list = NULL };

        assert_int_equal(put(&e, &f), 0);
        proc_tasks_read(&e, false);
        assert_int_equal(put(&e, &f), -7);
        proc_tasks_deinit(&e);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gone),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
