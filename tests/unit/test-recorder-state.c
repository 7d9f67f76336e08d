/* What a file of a recording that begins later begins with: exactly the tasks that there are, and what they have mapped. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/recorder/others.h"

static char found[4096]; /* "NAME pid/tid", "pid:start-end", "k:start-end", sorted by process as they come */

static int show(void *userdata, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        uint32_t task[2];
        uint64_t place[2];
        char line[64];

        assert_non_null(userdata);
        memcpy(task, bytes, sizeof(task));
        if (type == PERF_RECORD_COMM) {
                assert_int_equal(misc & PERF_RECORD_MISC_COMM_EXEC, 0);
                (void)snprintf(line, sizeof(line), "%s %u/%u ", (const char *)bytes + 8, task[0], task[1]);
        } else if (type == PERF_RECORD_KSYMBOL) {
                assert_int_equal(n, 24);
                memcpy(place, bytes, sizeof(*place));
                (void)snprintf(line, sizeof(line), "k:%llx ", (unsigned long long)place[0]);
        } else {
                memcpy(place, (const uint8_t *)bytes + 8, sizeof(place));
                (void)snprintf(line, sizeof(line), "%u:%llx+%llx ", task[0], (unsigned long long)place[0], (unsigned long long)place[1]);
        }
        strcat(found, line);
        return 0;
}

static void expect(const RecorderState *s, const char *text) {
        int userdata = 0;

        found[0] = '\0';
        assert_int_equal(recorder_state_put(s, show, &userdata), 0);
        assert_string_equal(found, text);
}

static void comm(RecorderState *s, uint32_t pid, uint32_t tid, const char *name, uint16_t misc) {
        struct {
                uint32_t pid, tid;
                char name[16];
        } r = { .pid = pid, .tid = tid };

        memcpy(r.name, name, strlen(name));
        recorder_state_take(s, PERF_RECORD_COMM, misc, &r, sizeof(r));
}

static void map(RecorderState *s, uint32_t pid, uint64_t start, uint64_t length) {
        const struct {
                uint32_t pid, tid;
                uint64_t start, length, rest[5];
        } r = { .pid = pid, .tid = pid, .start = start, .length = length };

        recorder_state_take(s, pid == UINT32_MAX ? PERF_RECORD_MMAP : PERF_RECORD_MMAP2, 0, &r, sizeof(r));
}

static void task(RecorderState *s, uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid) {
        const struct {
                uint32_t pid, ppid, tid, ptid;
                uint64_t time;
        } r = { .pid = pid, .ppid = ppid, .tid = tid, .ptid = ptid };

        recorder_state_take(s, type, 0, &r, sizeof(r));
}

static void ksymbol(RecorderState *s, uint64_t start, uint16_t flags) {
        const struct {
                uint64_t start;
                uint32_t length;
                uint16_t type, flags;
                char name[8];
        } r = { .start = start, .length = 64, .type = 1, .flags = flags, .name = "bpf_x" };

        recorder_state_take(s, PERF_RECORD_KSYMBOL, 0, &r, sizeof(r));
}

static void test_tasks(void **state) {
        RecorderState *s = recorder_state_new();

        (void)state;
        comm(s, 1, 1, "init", PERF_RECORD_MISC_COMM_EXEC);
        map(s, 1, 0x1000, 0x1000);
        task(s, PERF_RECORD_FORK, 2, 1, 2, 1); /* a process has what its parent had */
        expect(s, "init 1/1 1:1000+1000 init 2/2 2:1000+1000 ");
        task(s, PERF_RECORD_FORK, 2, 2, 3, 2); /* a thread has a name */
        comm(s, 2, 3, "worker", 0);
        comm(s, 2, 2, "renamed", 0);
        expect(s, "init 1/1 1:1000+1000 2:1000+1000 worker 2/3 renamed 2/2 ");
        task(s, PERF_RECORD_EXIT, 2, 1, 2, 1); /* the first thread: the others stay, with the memory */
        expect(s, "init 1/1 1:1000+1000 2:1000+1000 worker 2/3 ");
        task(s, PERF_RECORD_EXIT, 2, 1, 3, 1);
        expect(s, "init 1/1 1:1000+1000 ");
        task(s, PERF_RECORD_FORK, 4, 7, 4, 7); /* of one that nobody knows */
        task(s, PERF_RECORD_EXIT, 9, 9, 9, 9);
        map(s, 4, 0x5000, 0x10);
        comm(s, 4, 4, "new", PERF_RECORD_MISC_COMM_EXEC); /* another program: its memory is a new one */
        expect(s, "init 1/1 1:1000+1000 new 4/4 ");
        task(s, PERF_RECORD_FORK, 4, 1, 4, 1); /* its end was lost, and another one has its pid */
        expect(s, "init 1/1 1:1000+1000 init 4/4 4:1000+1000 ");
        recorder_state_free(s);
}

static void test_mappings(void **state) {
        RecorderState *s = recorder_state_new();

        (void)state;
        map(s, UINT32_MAX, 0xffff0000, 0x1000);
        ksymbol(s, 0xf000, 0);
        ksymbol(s, 0xe000, 0);
        ksymbol(s, 0xf000, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
        expect(s, "4294967295:ffff0000+1000 k:e000 ");
        comm(s, 5, 5, "a", 0);
        map(s, 5, 0x1000, 0x1000);
        map(s, 5, 0x3000, 0x1000);
        map(s, 5, 0x1000, 0x2000); /* in the place of the first one */
        expect(s, "a 5/5 5:3000+1000 5:1000+2000 4294967295:ffff0000+1000 k:e000 ");
        for (uint64_t i = 0; i < 10000; i++)
                map(s, 6, i << 12, 0x1000);
        comm(s, 6, 6, "many", 0);
        task(s, PERF_RECORD_EXIT, 6, 1, 6, 1);
        expect(s, "a 5/5 5:3000+1000 5:1000+2000 4294967295:ffff0000+1000 k:e000 ");
        recorder_state_free(s);
        assert_null(recorder_state_free(NULL));
}

static void give(Others *o, uint32_t pid, const char *text) {
        int userdata = 0;

        found[0] = '\0';
        assert_int_equal(others_give(o, pid, show, &userdata), 0);
        assert_string_equal(found, text);
}

static void take_comm(Others *o, uint32_t pid, const char *name) {
        struct {
                uint32_t pid, tid;
                char name[16];
        } r = { .pid = pid, .tid = pid };

        memcpy(r.name, name, strlen(name));
        others_take(o, PERF_RECORD_COMM, 0, &r, sizeof(r));
}

/* Of whom a sample comes is recorded from then on, with what is known of him, and with all that he begins. */
static void test_others(void **state) {
        Others *o = others_new();

        (void)state;
        assert_true(others_add_recorded(o, 10));
        assert_false(others_add_recorded(o, 10));
        assert_false(others_has(o, 10));
        assert_true(others_has(o, 20));
        assert_false(others_has_child(o, 11, 10));
        assert_false(others_has_child(o, 12, 11)); /* a grandchild */
        assert_false(others_has_child(o, 12, 12)); /* its thread */
        assert_true(others_has_child(o, 21, 20));
        assert_true(others_has_child(o, 21, 21));
        take_comm(o, 20, "parent");
        take_comm(o, 21, "other");
        give(o, 11, ""); /* its records have not waited */
        give(o, 21, "other 21/21 ");
        give(o, 21, "");
        assert_false(others_has(o, 21));
        assert_true(others_has(o, 20));
        assert_false(others_has_child(o, 22, 21));
        assert_true(others_has_child(o, 12, 20)); /* a pid that was used before */
        assert_true(others_has(o, 12));
        assert_false(others_has(o, 4194304)); /* no process: nothing is left out */
        assert_false(others_has(o, UINT32_MAX));
        assert_false(others_add_recorded(o, UINT32_MAX));
        others_free(o);
        assert_null(others_free(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_tasks), cmocka_unit_test(test_mappings), cmocka_unit_test(test_others) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
