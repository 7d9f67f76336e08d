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

static uint32_t base; /* the channels of a test are those of the group that begins with this one */

static void describe(TaskTable *t, Task *task, uint32_t number) {
        assert_int_equal(task_set_described(t, task, base + number), 0);
}

/* "pid comm executable cgroup parent uid", with - for what is not known, + behind it once it has ended. */
static void check(TaskTable *t, uint32_t tid, const char *expected) {
        Task *task = task_table_find(t, tid);
        char found[256] = "nobody", uid[16] = "-";
        const Process *p;

        if (task) {
                p = task->process;
                if (p->has_uid)
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
        assert_int_equal(task_table_add_group(t, BATCH_GROUP(base)), 0);
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

static void put_uid(TaskTable *t, nsec_t time, uint32_t pid, uint32_t uid) {
        assert_int_equal(task_table_set_uid(t, time, pid, uid), 0);
}

/* The kernel reports them beside the records. */
static void test_uids(void **state) {
        TaskTable t;

        init(&t);
        put_uid(&t, 90, 10, 7); /* /proc was read later */
        check(&t, 10, "10 sh /bin/sh /user 1 1000");
        put_fork(&t, 110, 10, 10, 20, 20);
        describe(&t, task_table_find(&t, 20), 1);
        put_uid(&t, 115, 20, 33);
        check(&t, 20, "20 sh /bin/sh /user 10 33");
        assert_true(task_was_described(task_table_find(&t, 20), base + 1)); /* and is again, before its next item */
        put_uid(&t, 114, 20, 34);
        check(&t, 20, "20 sh /bin/sh /user 10 33");
        put_fork(&t, 116, 20, 20, 30, 30);
        put_text(&t, 117, TASK_NOTE_EXEC, 20, 20, "x"); /* nothing has to be looked up */
        assert_false(task_table_find(&t, 20)->process->uid_is_guess);
        check(&t, 30, "30 sh /bin/sh /user 20 33");
        check(&t, 10, "10 sh /bin/sh /user 1 1000");

        put_uid(&t, 121, 40, 34); /* before its beginning comes */
        check(&t, 40, "40 - - - 0 34");
        put_fork(&t, 120, 10, 10, 40, 40);
        check(&t, 40, "40 sh /bin/sh /user 10 34");
        put_exit(&t, 130, 40, 40);
        put_uid(&t, 141, 40, 35); /* the pid is used again */
        put_fork(&t, 140, 10, 10, 40, 40);
        check(&t, 40, "40 sh /bin/sh /user 10 35");
        put_uid(&t, 151, 40, 36); /* and again, and its end was lost */
        put_fork(&t, 150, 10, 10, 40, 40);
        check(&t, 40, "40 sh /bin/sh /user 10 36");

        task_table_doubt_uids(&t, 155); /* some were lost */
        task_table_confirm_uid(&t, task_table_find(&t, 40)->process, true, 36);
        task_table_confirm_uid(&t, task_table_find(&t, 30)->process, false, 0);
        check(&t, 40, "40 sh /bin/sh /user 10 36");
        check(&t, 30, "30 sh /bin/sh /user 20 -");
        put_fork(&t, 160, 40, 40, 50, 50);
        assert_false(task_table_find(&t, 50)->process->uid_is_guess);
        put_fork(&t, 161, 20, 20, 51, 51); /* of whom it is a guess still */
        assert_true(task_table_find(&t, 51)->process->uid_is_guess);
        task_table_deinit(&t);
}

static bool is_doubtful(TaskTable *t, uint32_t pid) {
        const Process *p = task_table_find(t, pid)->process;

        assert_int_equal(p->uid_is_guess, p->uid_is_lost);
        return p->uid_is_lost;
}

/* What is told of the time of a loss is in doubt, whenever it is told. */
static void test_lost_uids(void **state) {
        TaskTable t;

        init(&t);
        t.confirms_uids = true;
        put_fork(&t, 110, 10, 10, 20, 20);
        assert_false(is_doubtful(&t, 20));
        task_table_doubt_uids(&t, UINT64_MAX); /* and it goes on */
        assert_true(is_doubtful(&t, 20));
        put_uid(&t, 130, 20, 33);
        assert_true(is_doubtful(&t, 20));
        task_table_doubt_uids(&t, 200);
        put_uid(&t, 150, 20, 34); /* has waited for the merge: one behind it was lost */
        assert_true(is_doubtful(&t, 20));
        task_table_confirm_uid(&t, task_table_find(&t, 10)->process, true, 1000);
        put_fork(&t, 160, 10, 10, 30, 30); /* whose own change was lost */
        assert_true(is_doubtful(&t, 30));
        put_fork(&t, 200, 10, 10, 40, 40);
        assert_true(is_doubtful(&t, 40));
        put_fork(&t, 201, 10, 10, 50, 50); /* behind it reports are whole again */
        assert_false(is_doubtful(&t, 50));
        put_fork(&t, 202, 30, 30, 60, 60);
        assert_true(is_doubtful(&t, 60));
        put_uid(&t, 203, 30, 33);
        assert_false(is_doubtful(&t, 30));
        check(&t, 30, "30 sh /bin/sh /user 10 33");
        describe(&t, task_table_find(&t, 30), 1);
        task_table_doubt_uids(&t, 300);
        assert_true(task_was_described(task_table_find(&t, 30), base + 1)); /* with what is not known any more */
        task_table_deinit(&t);
}

/* Where the kernel does not. */
static void test_uids_of_proc(void **state) {
        TaskTable t;

        init(&t);
        t.guesses_uids = t.confirms_uids = true;
        put_fork(&t, 110, 10, 10, 20, 20);
        assert_false(task_table_find(&t, 20)->process->uid_is_guess);
        describe(&t, task_table_find(&t, 20), 1);
        put_text(&t, 120, TASK_NOTE_EXEC, 20, 20, "x");
        assert_true(task_table_find(&t, 20)->process->uid_is_guess);
        task_table_confirm_uid(&t, task_table_find(&t, 20)->process, true, 33);
        check(&t, 20, "20 x - /user 10 33");
        put_text(&t, 121, TASK_NOTE_CGROUP, 0, 20, "/job");
        assert_true(task_table_find(&t, 20)->process->uid_is_guess);
        put_text(&t, 122, TASK_NOTE_COMM, 60, 60, "y"); /* its beginning was lost */
        assert_true(task_table_find(&t, 60)->process->uid_is_guess);
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
        describe(&t, task_table_find(&t, 10), 3);
        describe(&t, task_table_find(&t, 11), 3);
        learn(&t, 200, list, 2);
        check(&t, 10, "10 sh /bin/sh /moved 1 1000");
        check(&t, 11, "10 pool /bin/sh /moved 1 1000");
        assert_int_equal(task_channels_described(&task_table_find(&t, 10)->channels, BATCH_GROUP(base)), 1 << 3); /* what is as it was need not be told again */
        assert_int_equal(task_channels_described(&task_table_find(&t, 11)->channels, BATCH_GROUP(base)), 0);
        assert_int_equal(task_channels_described(&task_table_find(&t, 10)->process->channels, BATCH_GROUP(base)), 0);
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
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 12), ALL); /* there is nothing to describe */
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 0);
        task = task_table_find(&t, 10);
        assert_false(task_was_described(task, base + 2));
        describe(&t, task, 2);
        describe(&t, task, 5);
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 1 << 2 | 1 << 5);
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 11), 0);
        assert_false(task_was_described(task_table_find(&t, 11), base + 2)); /* its process was, and still is like that */
        describe(&t, task_table_find(&t, 11), 2);

        put_text(&t, 110, TASK_NOTE_COMM, 10, 10, "sh"); /* no other than before */
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 1 << 2 | 1 << 5);
        put_text(&t, 111, TASK_NOTE_COMM, 10, 10, "bash");
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 0);
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 11), 1 << 2);
        assert_true(task_was_described(task, base + 2) && task_was_described(task, base + 5) && !task_was_described(task, base + 6));
        describe(&t, task, 2);
        put_text(&t, 112, TASK_NOTE_CGROUP, 0, 10, "/moved"); /* of both threads */
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 0);
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 11), 0);
        assert_true(task_was_described(task_table_find(&t, 11), base + 5)); /* thread 10 was: items of it are of the old cgroup */
        task_table_forget_channel(&t, base + 5);
        assert_false(task_was_described(task, base + 5));

        put_exit(&t, 120, 10, 10);
        put_fork(&t, 130, 1, 1, 10, 10);
        assert_int_equal(task_table_described(&t, BATCH_GROUP(base), 10), 0);
        assert_true(task_was_described(task_table_find(&t, 10), base + 2)); /* the channel has another one of this tid */
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
                describe(&t, task_table_find(&t, i), 1);
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
                describe(&t, task_table_find(&t, 4000 + i), 1);
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
        describe(&t, task_table_find(&t, 10), 4);
        put_exit(&t, 110, 10, 10);
        put_fork(&t, 111, 1, 1, 12, 12);
        put_exit(&t, 112, 12, 12);
        assert_int_equal(task_table_prune(&t, NULL, NULL, &n_living), 0);
        check(&t, 10, "nobody");
        check(&t, 11, "10 worker /bin/sh /user 1 1000");
        assert_int_equal(task_channels_described(&task_table_find(&t, 11)->process->channels, BATCH_GROUP(base)), 0);
        put_fork(&t, 120, 10, 11, 10, 13); /* a thread of a process whose leader is forgotten */
        check(&t, 13, "10 worker /bin/sh /user 1 1000");
        task_table_deinit(&t);
}

static int begin_with_first(void **state) {
        base = 0;
        return 0;
}

static int begin_with_last(void **state) {
        base = SUBSCRIPTIONS_MAX - BATCH_BITS;
        return 0;
}

/* Channels of several groups, against a table of bits: who has what, whoever forgets and whatever changes. */
static void test_many_channels(void **state) {
        static bool known[SUBSCRIPTIONS_MAX], described[SUBSCRIPTIONS_MAX];
        uint64_t seed = 38;
        TaskTable t;
        Task *task;

        memset(known, 0, sizeof(known));
        memset(described, 0, sizeof(described));
        assert_int_equal(task_table_init(&t, TASKS_MAX, TASKS_ENDED_MAX), 0);
        for (uint32_t group = 0; group < BATCH_GROUPS; group++)
                assert_int_equal(task_table_add_group(&t, group), 0);
        learn_shell(&t, 100);
        task = task_table_find(&t, 10);
        for (unsigned round = 0; round < 20000; round++) {
                uint32_t number, what;

                seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
                what = (uint32_t)(seed >> 60);
                number = (uint32_t)(seed >> 33) % (round < 10000 ? SUBSCRIPTIONS_MAX : 3 * BATCH_BITS);
                if (what < 10) {
                        assert_int_equal(task_set_described(&t, task, number), 0);
                        known[number] = described[number] = true;
                } else if (what < 15) {
                        task_table_forget_channel(&t, number);
                        known[number] = described[number] = false;
                } else if (round % 40 == 0) {
                        char name[COMM_SIZE];

                        (void)snprintf(name, sizeof(name), "%u", round);
                        put_text(&t, 200 + round, TASK_NOTE_COMM, 10, 10, name);
                        memset(described, 0, sizeof(described));
                }
                assert_int_equal(task_was_described(task, number), known[number]);
                for (uint32_t i = 0; round % 500 == 0 && i < SUBSCRIPTIONS_MAX; i++)
                        if ((task_table_described(&t, BATCH_GROUP(i), 10) >> i % BATCH_BITS & 1) != described[i] ||
                            task_was_described(task, i) != known[i])
                                fail_msg("channel %u in round %u", i, round);
        }
        for (uint32_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
                task_table_forget_channel(&t, i);
        assert_true(task->channels.groups == 0 && !task->channels.others); /* and no memory is left */
        assert_true(task->process->channels.groups == 0 && !task->process->channels.others);
        task_table_deinit(&t);
}

#define OF_FIRST(test) cmocka_unit_test_setup(test, begin_with_first)
#define OF_LAST(test) { #test ", last group", test, begin_with_last, NULL, NULL }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lives),
                cmocka_unit_test(test_uids),
                cmocka_unit_test(test_lost_uids),
                cmocka_unit_test(test_uids_of_proc),
                cmocka_unit_test(test_learn),        cmocka_unit_test(test_many_channels),
                OF_FIRST(test_descriptions),         OF_LAST(test_descriptions),
                OF_FIRST(test_bounds),               OF_LAST(test_bounds),
                OF_FIRST(test_forgotten_process),    OF_LAST(test_forgotten_process),
                OF_FIRST(test_out_of_order),         OF_LAST(test_out_of_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
