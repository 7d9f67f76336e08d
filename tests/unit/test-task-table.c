/*
 * The table of tasks: who a thread is at any moment, whatever comes in which order, as long as what is older does not
 * undo what is newer; what is described to whom; and what is forgotten first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "daemon/model/task-table.h"

static void apply(TaskTable *t, nsec_t time, const TaskNote *n) {
        uint8_t bytes[256];
        size_t length = task_note_put(n, bytes, sizeof(bytes));
        TaskNote note;

        assert_true(length > 0);
        assert_int_equal(task_note_put(n, bytes, length - 1), 0);
        note = task_note_get(bytes, length);
        assert_int_equal(task_table_apply(t, time, &note), 0);
}

static void put_fork(TaskTable *t, nsec_t time, uint32_t parent_pid, uint32_t parent_tid, uint32_t pid, uint32_t tid) {
        apply(t, time, &(TaskNote){ .kind = TASK_NOTE_FORK, .pid = pid, .tid = tid, .parent_pid = parent_pid,
                                    .parent_tid = parent_tid });
}

static void put_text(TaskTable *t, nsec_t time, TaskNoteKind kind, uint32_t pid, uint32_t tid, const char *text) {
        apply(t, time, &(TaskNote){ .kind = kind, .pid = pid, .tid = tid, .text = text, .n_text = (uint32_t)strlen(text),
                                    .cgroup = kind == TASK_NOTE_CGROUP ? strlen(text) : 0 });
}

static void put_exit(TaskTable *t, nsec_t time, uint32_t pid, uint32_t tid) {
        apply(t, time, &(TaskNote){ .kind = TASK_NOTE_EXIT, .pid = pid, .tid = tid });
}

/* "pid comm executable cgroup parent uid", with - for what is not known, + behind it once it has ended. */
static void check(TaskTable *t, uint32_t tid, const char *expected) {
        Task *task = task_table_find(t, tid);
        char found[256] = "nobody", uid[16] = "-";
        const Process *p;

        if (task) {
                p = task->process;
                if (p->has_origin)
                        (void)snprintf(uid, sizeof(uid), "%u", p->uid);
                (void)snprintf(found, sizeof(found), "%u %s %s %s %u %s%s", p->pid, *task->comm ? task->comm : "-",
                               p->executable ? p->executable->bytes : "-", p->cgroup ? p->cgroup->bytes : "-", p->parent, uid,
                               task->has_ended ? " +" : "");
        }
        assert_string_equal(found, expected);
}

static void learn(TaskTable *t, nsec_t begin, const ScannedProcess *list, size_t n) {
        TaskScan scan = { .begin = begin, .processes = (ScannedProcess *)list, .n = n };

        assert_int_equal(task_table_learn(t, &scan), 0);
}

/* The shell 10 of uid 1000, since 5, with the threads 10 and 11. */
static void learn_shell(TaskTable *t, nsec_t time) {
        ScannedThread threads[] = { { 10, "sh" }, { 11, "worker" } };
        ScannedProcess shell = { .pid = 10, .parent = 1, .uid = 1000, .time = time, .start = 5, .executable = (char *)"/bin/sh",
                                 .cgroup = (char *)"/user", .cgroup_id = 5, .threads = threads, .n_threads = 2 };

        learn(t, time, &shell, 1);
}

static void init(TaskTable *t) {
        assert_int_equal(task_table_init(t, TASKS_MAX, TASKS_ENDED_MAX), 0);
        learn_shell(t, 100);
}

static void test_lives(void **state) {
        TaskTable t;

        init(&t);
        check(&t, 10, "10 sh /bin/sh /user 1 1000");
        check(&t, 11, "10 worker /bin/sh /user 1 1000");
        check(&t, 12, "nobody");
        assert_int_equal(task_table_find(&t, 10)->since, 0);

        put_fork(&t, 110, 10, 11, 20, 20); /* by a thread: its name */
        check(&t, 20, "20 worker /bin/sh /user 10 1000");
        put_text(&t, 115, TASK_NOTE_CGROUP, 0, 20, "/job");
        put_text(&t, 116, TASK_NOTE_MAP, 20, 20, "/lib/early.so"); /* dlopen(3) */
        check(&t, 20, "20 worker /bin/sh /job 10 1000");
        put_text(&t, 120, TASK_NOTE_EXEC, 20, 20, "true");
        check(&t, 20, "20 true - /job 10 1000");
        assert_int_equal(task_table_find(&t, 20)->since, 120);
        put_text(&t, 121, TASK_NOTE_MAP, 20, 20, "/bin/true");
        put_text(&t, 122, TASK_NOTE_MAP, 20, 20, "/lib/ld.so");
        put_fork(&t, 123, 20, 20, 20, 21); /* a thread */
        put_text(&t, 124, TASK_NOTE_COMM, 20, 21, "a name longer than sixteen");
        put_text(&t, 125, TASK_NOTE_CGROUP, 0, 21, "/thread"); /* moves alone */
        check(&t, 20, "20 true /bin/true /job 10 1000");
        check(&t, 21, "20 a name longer t /bin/true /job 10 1000");
        put_text(&t, 126, TASK_NOTE_CGROUP, 0, 20, "/next"); /* with all its threads */
        check(&t, 21, "20 a name longer t /bin/true /next 10 1000");
        assert_int_equal(task_table_find(&t, 21)->process->cgroup_id, 5);
        put_exit(&t, 130, 20, 21);
        put_exit(&t, 131, 20, 20);
        check(&t, 21, "20 a name longer t /bin/true /next 10 1000 +"); /* its last samples have names too */
        check(&t, 20, "20 true /bin/true /next 10 1000 +");
        check(&t, 10, "10 sh /bin/sh /user 1 1000");

        put_fork(&t, 140, 10, 10, 20, 20); /* the pid is used again */
        check(&t, 20, "20 sh /bin/sh /user 10 1000");
        check(&t, 21, "20 a name longer t /bin/true /next 10 1000 +");
        put_text(&t, 150, TASK_NOTE_EXEC, 20, 20, "x");
        put_text(&t, 151, TASK_NOTE_MAP, 20, 20, ""); /* the kernel could not tell */
        put_text(&t, 152, TASK_NOTE_MAP, 20, 20, "/lib/ld.so");
        check(&t, 20, "20 x - /user 10 1000");
        task_table_deinit(&t);
}

/* As streams in the order of each CPU have it. */
static void test_out_of_order(void **state) {
        TaskTable t;

        init(&t);
        put_text(&t, 120, TASK_NOTE_EXEC, 20, 20, "true"); /* its FORK comes from another CPU */
        check(&t, 20, "20 true - - 0 -");
        put_text(&t, 121, TASK_NOTE_MAP, 20, 20, "/bin/true");
        put_fork(&t, 110, 10, 10, 20, 20);
        check(&t, 20, "20 true /bin/true /user 10 1000");
        put_text(&t, 115, TASK_NOTE_COMM, 20, 20, "old");
        put_fork(&t, 90, 7, 7, 20, 20);
        put_exit(&t, 95, 20, 20); /* of whoever had the pid before */
        check(&t, 20, "20 true /bin/true /user 10 1000");
        put_text(&t, 118, TASK_NOTE_CGROUP, 0, 20, "/b");
        put_text(&t, 112, TASK_NOTE_CGROUP, 0, 20, "/a");
        check(&t, 20, "20 true /bin/true /b 10 1000");

        put_exit(&t, 130, 20, 20);
        put_text(&t, 125, TASK_NOTE_COMM, 20, 20, "late"); /* before its end all the same */
        check(&t, 20, "20 late /bin/true /b 10 1000 +");
        put_text(&t, 150, TASK_NOTE_COMM, 20, 20, "next"); /* behind it: another one */
        check(&t, 20, "20 next - - 0 -");
        put_fork(&t, 140, 10, 10, 20, 20);
        check(&t, 20, "20 next /bin/sh /user 10 1000");

        put_exit(&t, 160, 20, 20);
        put_exit(&t, 190, 20, 20); /* of the next one, whose FORK comes now */
        put_fork(&t, 180, 10, 10, 20, 20);
        check(&t, 20, "20 sh /bin/sh /user 10 1000 +");
        task_table_deinit(&t);
}

/* Notes come from before the moment at which /proc is read. */
static void test_learn(void **state) {
        ScannedThread leader[] = { { 30, "thirty" } }, both[] = { { 10, "sh" }, { 11, "pool" } };
        ScannedProcess list[] = {
                { .pid = 10, .parent = 1, .uid = 1000, .time = 205, .start = 5, .executable = (char *)"/bin/sh",
                  .cgroup = (char *)"/moved", .threads = both, .n_threads = 2 },
                { .pid = 30, .parent = 10, .uid = 0, .time = 206, .start = 190 * NSEC_PER_SEC, .threads = leader, .n_threads = 1 },
        };
        TaskTable t;

        init(&t);
        put_fork(&t, 110, 99, 99, 40, 40); /* nobody knows its parent */
        put_fork(&t, 120, 99, 99, 20, 20);
        put_text(&t, 121, TASK_NOTE_EXEC, 20, 20, "gone");
        put_text(&t, 210, TASK_NOTE_EXEC, 30, 30, "newer");
        put_text(&t, 211, TASK_NOTE_MAP, 30, 30, "/bin/newer");
        put_fork(&t, 212, 30, 30, 31, 31);
        put_fork(&t, 213, 77, 77, 50, 50);
        task_set_described(&t, task_table_find(&t, 10), 3);
        task_set_described(&t, task_table_find(&t, 11), 3);
        learn(&t, 200, list, 2);
        check(&t, 10, "10 sh /bin/sh /moved 1 1000");
        check(&t, 11, "10 pool /bin/sh /moved 1 1000");
        assert_int_equal(task_table_find(&t, 10)->described, 1 << 3); /* what is as it was need not be told again */
        assert_int_equal(task_table_find(&t, 11)->described, 0);
        assert_int_equal(task_table_find(&t, 10)->process->described, 0);
        check(&t, 30, "30 newer /bin/newer - 10 0");
        check(&t, 31, "31 newer /bin/newer - 30 0"); /* from its parent, which is known now */
        check(&t, 40, "40 - - - 99 - +");            /* it was not there */
        check(&t, 20, "20 gone - - 99 - +");
        check(&t, 50, "50 - - - 77 -");              /* newer than the scan */

        leader[0] = (ScannedThread){ 10, "other" }; /* the pid was used again while nobody looked */
        list[0] = (ScannedProcess){ .pid = 10, .parent = 1, .time = 305, .start = 300 * NSEC_PER_SEC, .threads = leader,
                                    .n_threads = 1 };
        learn(&t, 300, list, 1);
        check(&t, 10, "10 other - - 1 0");
        check(&t, 11, "10 pool /bin/sh /moved 1 1000 +");
        check(&t, 50, "50 - - - 77 - +");
        task_table_deinit(&t);
}

#define ALL UINT64_MAX

static void test_descriptions(void **state) {
        TaskTable t;
        Task *task;

        init(&t);
        assert_int_equal(task_table_described(&t, 12), ALL); /* there is nothing to describe */
        assert_int_equal(task_table_described(&t, 10), 0);
        task = task_table_find(&t, 10);
        assert_false(task_was_described(task, 2));
        task_set_described(&t, task, 2);
        task_set_described(&t, task, 5);
        assert_int_equal(task_table_described(&t, 10), 1 << 2 | 1 << 5);
        assert_int_equal(task_table_described(&t, 11), 0);
        assert_false(task_was_described(task_table_find(&t, 11), 2)); /* its process was, and still is like that */
        task_set_described(&t, task_table_find(&t, 11), 2);

        put_text(&t, 110, TASK_NOTE_COMM, 10, 10, "sh"); /* no other than before */
        assert_int_equal(task_table_described(&t, 10), 1 << 2 | 1 << 5);
        put_text(&t, 111, TASK_NOTE_COMM, 10, 10, "bash");
        assert_int_equal(task_table_described(&t, 10), 0);
        assert_int_equal(task_table_described(&t, 11), 1 << 2);
        assert_true(task_was_described(task, 2) && task_was_described(task, 5) && !task_was_described(task, 6));
        task_set_described(&t, task, 2);
        put_text(&t, 112, TASK_NOTE_CGROUP, 0, 10, "/moved"); /* of both threads */
        assert_int_equal(task_table_described(&t, 10), 0);
        assert_int_equal(task_table_described(&t, 11), 0);
        assert_true(task_was_described(task_table_find(&t, 11), 5)); /* thread 10 was: items of it are of the old cgroup */
        task_table_forget_channel(&t, 5);
        assert_false(task_was_described(task, 5));

        put_exit(&t, 120, 10, 10);
        put_fork(&t, 130, 1, 1, 10, 10);
        assert_int_equal(task_table_described(&t, 10), 0);
        assert_true(task_was_described(task_table_find(&t, 10), 2)); /* the channel has another one of this tid */
        task_table_deinit(&t);
}

typedef struct Forgotten {
        uint32_t tids[64];
        size_t n;
} Forgotten;

static int on_forgotten(void *userdata, const Task *task) {
        Forgotten *f = userdata;

        f->tids[f->n++ % 64] = task->tid;
        return 0;
}

static void test_bounds(void **state) {
        Forgotten f = { .n = 0 };
        uint64_t n_living;
        TaskTable t;

        assert_int_equal(task_table_init(&t, 3000, 8), 0);
        for (uint32_t i = 1; i <= 3009; i++) {
                put_fork(&t, i, 0, 0, i, i);
                if (i > 3000)
                        put_exit(&t, i, i, i);
                task_set_described(&t, task_table_find(&t, i), 1);
        }
        assert_int_equal(task_table_prune(&t, on_forgotten, &f, &n_living), 0);
        assert_int_equal(n_living, 0);
        assert_int_equal(f.n, 9); /* down to 4 of them, but for 3000 in all none of these can stay */
        for (uint32_t i = 0; i < 9; i++)
                assert_int_equal(f.tids[i], 3001 + i); /* in the order in which they ended */
        check(&t, 3001, "nobody");

        f.n = 0;
        assert_int_equal(task_table_prune(&t, on_forgotten, &f, &n_living), 0);
        assert_int_equal(f.n, 0);
        for (uint32_t i = 1; i <= 20; i++) {
                put_fork(&t, 5000, 0, 0, 4000 + i, 4000 + i);
                task_set_described(&t, task_table_find(&t, 4000 + i), 1);
        }
        assert_int_equal(task_table_prune(&t, on_forgotten, &f, &n_living), 0);
        assert_true(n_living == 20 && f.n == 20 && t.n == 3000);
        for (uint32_t i = 1; i <= 3009; i++)
                (void)task_table_find(&t, i); /* in use */
        for (uint32_t i = 1; i <= 5; i++)
                put_fork(&t, 6000, 0, 0, 5000 + i, 5000 + i);
        for (Task *task = NULL, **b = t.buckets; b <= t.buckets + t.mask; b++)
                for (task = *b; task; task = task->next)
                        task->is_used = task->tid % 600 != 7; /* who was asked for lately */
        f.n = 0;
        assert_int_equal(task_table_prune(&t, on_forgotten, &f, &n_living), 0);
        assert_int_equal(n_living, 5);
        for (size_t i = 0; i < f.n; i++)
                assert_int_equal(f.tids[i] % 600, 7);
        task_table_deinit(&t);
        task_table_deinit(&t);
}

/* What a channel forgets of a process with one task has to be told with the next. */
static void test_forgotten_process(void **state) {
        uint64_t n_living;
        TaskTable t;

        assert_int_equal(task_table_init(&t, 16, 1), 0);
        learn_shell(&t, 100);
        task_set_described(&t, task_table_find(&t, 10), 4);
        put_exit(&t, 110, 10, 10);
        put_fork(&t, 111, 1, 1, 12, 12);
        put_exit(&t, 112, 12, 12);
        assert_int_equal(task_table_prune(&t, NULL, NULL, &n_living), 0);
        check(&t, 10, "nobody");
        check(&t, 11, "10 worker /bin/sh /user 1 1000");
        assert_int_equal(task_table_find(&t, 11)->process->described, 0);
        put_fork(&t, 120, 10, 11, 10, 13); /* a thread of a process whose leader is forgotten */
        check(&t, 13, "10 worker /bin/sh /user 1 1000");
        task_table_deinit(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lives),        cmocka_unit_test(test_out_of_order),
                cmocka_unit_test(test_learn),        cmocka_unit_test(test_descriptions),
                cmocka_unit_test(test_bounds),       cmocka_unit_test(test_forgotten_process),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
