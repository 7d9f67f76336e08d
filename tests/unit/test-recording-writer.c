/*
 * Recordings that are written, and what the reader finds in them: files and pipes, with and without zstd, with events that come late, files
 * that were never closed, cut off anywhere, and a full disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfd.h"
#include "proto/recording-format.h"

#define N_SAMPLES 5000
#define TYPE                                                                                                                     \
        (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |    \
         PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define REGISTERS UINT64_C(0x105) /* three */

static char directory[64], path[128], old[160];

static int set_up(void **state) {
        (void)state;
        (void)snprintf(directory, sizeof(directory), "/tmp/perfd-writer-XXXXXX");
        if (!mkdtemp(directory))
                return -1;
        (void)snprintf(path, sizeof(path), "%s/perf.data", directory);
        (void)snprintf(old, sizeof(old), "%s.old", path);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        (void)unlink(path);
        (void)unlink(old);
        return rmdir(directory); /* nothing else was left */
}

static perfd_recorded_event event_of(const char *name, const uint64_t *id) {
        return (perfd_recorded_event){ .name = name, .type = PERF_TYPE_SOFTWARE, .config = 1 + *id, .sample_period = 7, .sample_type = TYPE, .sample_regs_user = REGISTERS, .sample_stack_user = 24,
                                       .flags = PERFD_ATTR_SAMPLE_ID_ALL, .ids = id, .n_ids = 1 };
}

static const uint64_t ids[] = { 41, 42, 43 };
static const char *const names[] = { "cpu-clock", "page-faults", "late" };

static void add_event(perfd_recording_writer *w, size_t i) {
        const perfd_recorded_event e = event_of(names[i], &ids[i]);

        assert_int_equal(perfd_recording_writer_add_event(w, &e), 0);
}

static void put_sample(perfd_recording_writer *w, uint64_t i, size_t event) {
        const perfd_recorded_event e = event_of(names[event], &ids[event]);
        const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000 + i, PERF_CONTEXT_USER, 0x400000 + i };
        const uint64_t registers[] = { i, ~i, i * i };
        char raw[16] = "raw bytes", stack[] = "0123456789abcdefghijklmn";
        const perfd_recorded_sample s = {
                .id = { .event = &e, .id = ids[event], .pid = 100 + (uint32_t)(i % 3), .tid = 200, .time = 1000 + i, .cpu = (uint32_t)(i % 4) },
                .ip = 0x400000 + i, .period = i + 1, .callchain = chain, .n_callchain = i % 5, .raw = { .bytes = raw, .length = i % 17 },
                .registers_user = { .abi = i % 3, .values = registers, .n = 3 }, .stack_user = { .bytes = stack, .length = i % 25 } };

        assert_int_equal(perfd_recording_writer_put_sample(w, PERF_RECORD_MISC_USER, &s), 0);
}

static void check_sample(const perfd_recorded_sample *s, uint64_t i, size_t event) {
        assert_string_equal(s->id.event->name, names[event]);
        assert_int_equal(s->id.event->config, 1 + ids[event]);
        assert_int_equal(s->id.id, ids[event]);
        assert_int_equal(s->id.time, 1000 + i);
        assert_int_equal(s->id.pid, 100 + i % 3);
        assert_int_equal(s->id.tid, 200);
        assert_int_equal(s->id.cpu, i % 4);
        assert_int_equal(s->ip, 0x400000 + i);
        assert_int_equal(s->period, i + 1);
        assert_int_equal(s->n_callchain, i % 5 < 4 ? i % 5 : 4);
        if (i % 5 > 1)
                assert_int_equal(s->callchain[1], 0xffffffff81000000 + i);
        assert_in_range(s->raw.length, i % 17, i % 17 + 7); /* with padding */
        assert_int_equal(s->registers_user.abi, i % 3);
        assert_int_equal(s->registers_user.n, i % 3 ? 3 : 0);
        if (i % 3)
                assert_int_equal(s->registers_user.values[2], i * i);
        assert_int_equal(s->stack_user.length, i % 25);
        assert_memory_equal(s->stack_user.bytes, "0123456789abcdefghijklmn", i % 25);
        assert_memory_equal(s->raw.bytes, "raw bytes\0\0\0\0\0\0\0", i % 17 < 16 ? i % 17 : 16);
}

static void put_comm(perfd_recording_writer *w) {
        struct {
                uint32_t pid, tid;
                char comm[8];
                uint32_t id_pid, id_tid;
                uint64_t time, cpu, id;
        } r = { .pid = 100, .tid = 200, .comm = "worker", .id_pid = 100, .id_tid = 200, .time = 999, .id = 41 };

        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, &r, sizeof(r)), 0);
}

/* A comm, samples of two events in turn, and of one that is added half way. */
static void put_all(perfd_recording_writer *w) {
        static const char *const words[] = { "perfctl", "record" };

        add_event(w, 0);
        add_event(w, 1);
        assert_int_equal(perfd_recording_writer_add_host(w, words, 2), 0);
        put_comm(w);
        for (uint64_t i = 0; i < N_SAMPLES; i++) {
                if (i == N_SAMPLES / 2)
                        add_event(w, 2);
                put_sample(w, i, i < N_SAMPLES / 2 ? i % 2 : 2);
                if (i % 1000 == 999)
                        assert_int_equal(perfd_recording_writer_put(w, PERF_DATA_FINISHED_ROUND, 0, NULL, 0), 0);
        }
}

/* Returns how many samples there are, which are the first ones. */
static uint64_t read_all(const char *file, bool is_whole, bool is_pipe) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        uint64_t n = 0, comms = 0, rounds = 0;
        int code;

        assert_non_null(r);
        assert_int_equal(perfd_recording_open(r, file), 0);
        assert_int_equal(perfd_recording_is_pipe(r), is_pipe);
        while ((code = perfd_recording_next(r, &record)) == 0) {
                perfd_recorded_sample s;
                perfd_recorded_id id;

                comms += record->type == PERF_RECORD_COMM;
                rounds += record->type == PERF_DATA_FINISHED_ROUND;
                if (record->type == PERF_RECORD_COMM) {
                        assert_int_equal(perfd_recording_id(r, record, &id), 0);
                        assert_int_equal(id.time, 999);
                }
                if (record->type != PERF_RECORD_SAMPLE)
                        continue;
                assert_int_equal(perfd_recording_sample(r, record, &s), 0);
                if (is_whole)
                        check_sample(&s, n, n < N_SAMPLES / 2 ? n % 2 : 2);
                else
                        assert_int_equal(s.id.time, 1000 + n);
                n++;
        }
        assert_int_equal(code, PERFD_E_ENDED);
        if (is_whole) {
                assert_int_equal(perfd_recording_damage_count(r), 0);
                assert_int_equal(comms, 1);
                assert_int_equal(rounds, N_SAMPLES / 1000);
                assert_true(perfd_recording_has_feature(r, PERF_DATA_FEATURE_HOSTNAME));
                assert_true(perfd_recording_has_feature(r, PERF_DATA_FEATURE_NRCPUS));
                assert_int_equal(perfd_recording_has_feature(r, PERF_DATA_FEATURE_SAMPLE_TIME), !is_pipe);
                assert_int_equal(perfd_recording_n_events(r), 3);
        }
        perfd_recording_free(r);
        return n;
}

static void test_file(void **state) {
        (void)state;
        for (int level = 0; level <= 3; level += 3) {
                perfd_recording_writer *w = perfd_recording_writer_new();

                assert_int_equal(perfd_recording_writer_open(w, path, level), 0);
                put_all(w);
                assert_int_equal(access(path, F_OK), level > 0 ? 0 : -1); /* it has its name at the end, */
                assert_int_equal(perfd_recording_writer_close(w), 0);
                perfd_recording_writer_free(w);
                assert_int_equal(read_all(path, true, false), N_SAMPLES);
                assert_int_equal(access(old, F_OK), level > 0 ? 0 : -1); /* and the one before is kept */
        }
        assert_int_equal(read_all(old, true, false), N_SAMPLES);
}

static void test_pipe(void **state) {
        (void)state;
        for (int level = 0; level <= 3; level += 3) {
                perfd_recording_writer *w = perfd_recording_writer_new();
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

                assert_true(fd >= 0);
                assert_int_equal(perfd_recording_writer_open_pipe(w, fd, level), 0);
                put_all(w);
                assert_int_equal(perfd_recording_writer_close(w), 0);
                perfd_recording_writer_free(w);
                assert_int_equal(close(fd), 0);
                assert_int_equal(read_all(path, true, true), N_SAMPLES);
        }
}

/* What is whole of a recording that is damaged, or was not closed, is one in which nothing is damaged, with the same samples and sections. */
static void repair(uint64_t n_samples) {
        perfd_recording *r = perfd_recording_new(), *mended = perfd_recording_new();
        const perfd_recorded *record;
        uint64_t n = 0;
        int fd = open(old, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), code;

        assert_true(fd >= 0);
        assert_int_equal(perfd_recording_open(r, path), 0);
        assert_int_equal(perfd_recording_repair(r, fd), PERFD_E_STATE); /* nobody knows yet what is whole */
        while (perfd_recording_next(r, &record) == 0)
                ;
        assert_true(perfd_recording_damage_count(r) > 0);
        assert_int_equal(perfd_recording_repair(r, fd), 0);
        assert_int_equal(close(fd), 0);
        assert_int_equal(perfd_recording_open(mended, old), 0);
        while ((code = perfd_recording_next(mended, &record)) == 0)
                n += record->type == PERF_RECORD_SAMPLE;
        assert_int_equal(code, PERFD_E_ENDED);
        assert_int_equal(perfd_recording_damage_count(mended), 0);
        assert_int_equal(n, n_samples);
        assert_int_equal(perfd_recording_n_events(mended), 3);
        for (size_t i = 0; i < 2; i++)
                assert_string_equal(perfd_recording_event(mended, i)->name, names[i]);
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                assert_int_equal(perfd_recording_has_feature(mended, bit), perfd_recording_has_feature(r, bit));
        assert_true(perfd_recording_has_feature(mended, PERF_DATA_FEATURE_HOSTNAME));
        perfd_recording_free(r);
        perfd_recording_free(mended);
}

/* A child is killed while it writes: what is there is read, and cut off further, too. */
static void test_killed(void **state) {
        char part[512], line[16];
        int tell[2];
        pid_t pid;

        (void)state;
        assert_int_equal(pipe(tell), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                perfd_recording_writer *w = perfd_recording_writer_new();

                if (perfd_recording_writer_open(w, path, 1) != 0)
                        _exit(1);
                put_all(w);
                put_sample(w, N_SAMPLES, 2); /* in a batch that is not whole yet */
                (void)!write(tell[1], "1", 1);
                (void)pause();
                _exit(0);
        }
        assert_int_equal(read(tell[0], line, 1), 1);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(access(path, F_OK), -1);
        (void)snprintf(part, sizeof(part), "mv %s.part-?????? %s", path, path);
        assert_int_equal(system(part), 0);
        assert_int_equal(read_all(path, false, false), N_SAMPLES);
        repair(N_SAMPLES);
        for (int i = 1; i < 200; i++) {
                struct stat st;
                uint64_t n;

                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(truncate(path, st.st_size - i), 0);
                n = read_all(path, false, false);
                assert_in_range(n, 0, i < 4 ? N_SAMPLES : N_SAMPLES - 1); /* the last record is none of a sample */
                if (i % 20 == 1)
                        repair(n);
        }
        (void)close(tell[0]);
        (void)close(tell[1]);
}

/* What the LOST_SAMPLES of the file says. */
static uint64_t said_lost(void) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        uint64_t n = 0;

        assert_int_equal(perfd_recording_open(r, path), 0);
        while (perfd_recording_next(r, &record) == 0)
                if (record->type == PERF_RECORD_LOST_SAMPLES) {
                        assert_int_equal(n, 0);
                        memcpy(&n, record->bytes, sizeof(n));
                }
        perfd_recording_free(r);
        return n;
}

/* RLIMIT_FSIZE is as a full disk: what is whole of it becomes a file, which says how much is missing. */
static void test_full(void **state) {
        perfd_recording_writer *w = perfd_recording_writer_new();
        struct rlimit before, limit;
        uint64_t i = 0, n, n_unwritten;
        int code = 0;

        (void)state;
        (void)signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = (struct rlimit){ .rlim_cur = 300001, .rlim_max = before.rlim_max };
        assert_int_equal(perfd_recording_writer_open(w, path, 0), 0);
        add_event(w, 0);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        while (code == 0) {
                const perfd_recorded_event e = event_of(names[0], &ids[0]);
                const perfd_recorded_sample s = { .id = { .event = &e, .id = 41, .time = 1000 + i } };

                code = perfd_recording_writer_put_sample(w, 0, &s);
                i += code == 0;
        }
        assert_int_equal(code, -EFBIG);
        assert_non_null(strstr(perfd_recording_writer_error(w), "File too large, behind "));
        n_unwritten = perfd_recording_writer_n_unwritten(w);
        assert_true(perfd_recording_writer_close(w) < 0);
        assert_non_null(strstr(perfd_recording_writer_error(w), "File too large, behind "));
        perfd_recording_writer_free(w);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        n = read_all(path, false, false);
        assert_in_range(n, 1, i - 1);
        assert_int_equal(n_unwritten, i + 1 - n);
        assert_int_equal(said_lost(), n_unwritten);
}

static void skip_key(void *userdata, const char *key) {
        (void)userdata, (void)key;
}

static void skip_end(void *userdata) {
        (void)userdata;
}

static void skip_flag(void *userdata, const char *key, bool is) {
        (void)userdata, (void)key, (void)is;
}

static void skip_bytes(void *userdata, const char *key, perfd_text bytes) {
        (void)userdata, (void)key, (void)bytes;
}

static void skip_text(void *userdata, const char *key, perfd_text text) {
        (void)userdata, (void)key, (void)text;
}

static void take_number(void *userdata, const char *key, uint64_t number) {
        (void)key;
        *(uint64_t *)userdata = number;
}

/* Formats come again with an event that is added late: more, or fewer; the last ones count, and the records are what they were. */
static void test_late_formats(void **state) {
        static const perfd_feature_visitor visitor = { skip_key, skip_end, skip_key, skip_end, skip_text, take_number, skip_bytes, skip_flag };
        static const char formats[64] = "formats";

        (void)state;
        for (int i = 0; i < 8; i++) {
                const bool is_pipe = i & 1, has_early = i & 2;
                const size_t last = i & 4 ? sizeof(formats) : 16;
                perfd_recording_writer *w = perfd_recording_writer_new();
                perfd_recording *r = perfd_recording_new();
                const perfd_recorded *record;
                const int fd = open(old, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                uint64_t size = 0, n = 0;

                assert_int_equal(is_pipe ? perfd_recording_writer_open_pipe(w, fd, 0) : perfd_recording_writer_open(w, path, 0), 0);
                add_event(w, 0);
                if (has_early)
                        assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TRACING_DATA, formats, 32), 0);
                put_sample(w, 0, 0);
                add_event(w, 2);
                assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_HOSTNAME, formats, 8), PERFD_E_STATE);
                assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TRACING_DATA, formats, 40), 0);
                assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TRACING_DATA, formats, last), 0);
                put_sample(w, 1, 2);
                assert_int_equal(perfd_recording_writer_close(w), 0);
                assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TRACING_DATA, formats, 8), PERFD_E_STATE);
                perfd_recording_writer_free(w);
                assert_int_equal(close(fd), 0);
                assert_int_equal(perfd_recording_open(r, is_pipe ? old : path), 0);
                while (perfd_recording_next(r, &record) == 0)
                        n += record->type == PERF_RECORD_SAMPLE;
                (void)perfd_recording_visit_feature(r, PERF_DATA_FEATURE_TRACING_DATA, &visitor, &size);
                assert_int_equal(n, 2);
                assert_int_equal(size, last);
                perfd_recording_free(r);
        }
}

static void test_refused(void **state) {
        perfd_recording_writer *w = perfd_recording_writer_new();
        perfd_recorded_event e = event_of("a", &ids[0]);
        const char *const none = "sched";

        (void)state;
        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, "", 0), PERFD_E_STATE);
        assert_int_equal(perfd_recording_writer_open(w, path, 20), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_open(w, path, 0), 0);
        assert_int_equal(perfd_recording_writer_open(w, path, 0), PERFD_E_STATE);
        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, "12345678", 8), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_event(w, &e), 0);
        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, "1234567", 7), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, "", 65528), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_tracing(w, "/", &none, 1), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_EVENT_DESC, "", 0), PERFD_E_INVALID);
        e.flags = 0;
        assert_int_equal(perfd_recording_writer_add_event(w, &e), PERFD_E_INVALID);
        e = event_of("a", &ids[0]);
        assert_int_equal(perfd_recording_writer_put_sample(w, 0, &(perfd_recorded_sample){ .id = { .event = &e }, .registers_user = {
                .abi = 2, .values = (const uint64_t[2]){ 0 }, .n = 2 } }), PERFD_E_INVALID);
        e = event_of("b", &ids[1]);
        e.n_ids = 0;
        assert_int_equal(perfd_recording_writer_add_event(w, &e), PERFD_E_INVALID);
        perfd_recording_writer_free(w); /* and nothing is left */
        assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_file, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_pipe, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_late_formats, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
