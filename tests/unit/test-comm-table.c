/*
 * The table of names: what it keeps, what it forgets, and that no name is ever put together from two, however many
 * write and read at once. Each name in the second test says of which tid it is, and its other bytes are all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/thread.h"
#include "daemon/model/comm-table.h"

static void check_name(const CommTable *t, uint32_t tid, const char *name) {
        char comm[COMM_SIZE];

        if (name) {
                assert_true(comm_table_get(t, tid, comm));
                assert_string_equal(comm, name);
        } else
                assert_false(comm_table_get(t, tid, comm));
}

static void test_names(void **state) {
        uint32_t tids[COMM_BUCKET_WAYS + 2] = { 0 };
        uint64_t version;
        CommTable t;
        size_t n = 0;

        assert_int_equal(comm_table_init(&t, 1), 0);
        check_name(&t, 1, NULL);
        check_name(&t, 0, NULL);
        version = comm_table_version(&t);
        comm_table_set(&t, 1, 100, "first");
        assert_true(comm_table_version(&t) > version);
        check_name(&t, 1, "first");
        comm_table_set(&t, 1, 99, "older");
        check_name(&t, 1, "first");
        comm_table_set(&t, 1, 100, "same time");
        check_name(&t, 1, "same time");
        comm_table_set(&t, 1, 101, "0123456789abcdefgh");
        check_name(&t, 1, "0123456789abcde");
        comm_table_set(&t, 1, 102, "");
        check_name(&t, 1, "");
        comm_table_deinit(&t);

        /* more tids of one bucket than it has ways: the one told longest ago is forgotten */
        assert_int_equal(comm_table_init(&t, 1), 0);
        for (uint32_t tid = 1; n < COMM_BUCKET_WAYS + 2; tid++) {
                CommTable probe;

                if (n > 0) {
                        assert_int_equal(comm_table_init(&probe, 1), 0);
                        comm_table_set(&probe, tids[0], 1, "x");
                        comm_table_set(&probe, tid, 2, "y");
                        for (uint32_t i = 0; i < t.mask + 1; i++)
                                if (probe.buckets[i].tids[0] == tids[0] && probe.buckets[i].tids[1] == tid)
                                        tids[n] = tid;
                        comm_table_deinit(&probe);
                        if (tids[n] == tid)
                                n++;
                } else
                        tids[n++] = tid;
        }
        for (size_t i = 0; i < COMM_BUCKET_WAYS; i++)
                comm_table_set(&t, tids[i], i == 2 ? 5 : 10 + i, "old");
        comm_table_set(&t, tids[COMM_BUCKET_WAYS], 20, "new");
        check_name(&t, tids[2], NULL);
        check_name(&t, tids[0], "old");
        comm_table_set(&t, tids[COMM_BUCKET_WAYS + 1], 21, "new");
        check_name(&t, tids[0], NULL);
        check_name(&t, tids[1], "old");
        check_name(&t, tids[3], "old");
        check_name(&t, tids[COMM_BUCKET_WAYS], "new");
        comm_table_deinit(&t);
        comm_table_deinit(&t);
}

#define N_TIDS 200u
#define TURNS 400000u

typedef struct Worker {
        CommTable *table;
        Thread thread;
        unsigned first; /* of its random numbers */
        bool writes;
        unsigned hits;
} Worker;

static int run_worker(void *userdata) {
        Worker *w = userdata;
        uint32_t random = w->first;

        for (unsigned turn = 1; turn <= TURNS; turn++) {
                char comm[COMM_SIZE], letter;
                unsigned of;
                uint32_t tid;

                random = random * 1664525 + 1013904223;
                tid = 1 + (random >> 8) % N_TIDS;
                if (w->writes) {
                        letter = (char)('a' + (random >> 24) % 26);
                        (void)snprintf(comm, sizeof(comm), "%07u", tid);
                        memset(comm + 7, letter, 8);
                        comm[15] = '\0';
                        comm_table_set(w->table, tid, turn, comm);
                } else if (comm_table_get(w->table, tid, comm)) {
                        assert(sscanf(comm, "%7u", &of) == 1 && of == tid && comm[15] == '\0');
                        for (int i = 8; i < 15; i++)
                                assert(comm[i] == comm[7]);
                        w->hits++;
                }
        }
        return 0;
}

/* More tids than places, so that names come and go in each bucket while it is read. */
static void test_together(void **state) {
        Worker workers[4] = { { .first = 1, .writes = true }, { .first = 2, .writes = true }, { .first = 3 }, { .first = 4 } };
        CommTable t;

        assert_int_equal(comm_table_init(&t, 64), 0);
        for (size_t i = 0; i < 4; i++) {
                workers[i].table = &t;
                assert_int_equal(thread_start(&workers[i].thread, THREAD_READER, "worker", -1, run_worker, &workers[i]), 0);
        }
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(thread_join(&workers[i].thread), 0);
        assert_true(workers[2].hits > 1000 && workers[3].hits > 1000);
        comm_table_deinit(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
