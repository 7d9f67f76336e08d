/* Build ids in recordings that are written: of files, in the order in which they come, and of the modules that are loaded. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfd.h"
#include "client/recording-writer/host-kernel.h"
#include "proto/recording-format.h"

static char directory[64], path[128];

static int set_up(void **state) {
        (void)state;
        (void)snprintf(directory, sizeof(directory), "/tmp/perfd-build-ids-XXXXXX");
        if (!mkdtemp(directory))
                return -1;
        (void)snprintf(path, sizeof(path), "%s/perf.data", directory);
        return 0;
}

static int tear_down(void **state) {
        (void)state;
        return remove(path) == 0 ? remove(directory) : -1; /* nothing else was left */
}

static void add_event(perfd_recording_writer *w) {
        static const uint64_t id = 41;
        const perfd_recorded_event e = { .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .sample_period = 7, .ids = &id, .n_ids = 1,
                                         .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID, .flags = PERFD_ATTR_SAMPLE_ID_ALL };

        assert_int_equal(perfd_recording_writer_add_event(w, &e), 0);
}

static void put_comm(perfd_recording_writer *w) {
        static const struct {
                uint32_t pid, tid;
                char comm[8];
                uint32_t id_pid, id_tid;
                uint64_t id;
        } r = { .pid = 100, .tid = 200, .comm = "worker", .id_pid = 100, .id_tid = 200, .id = 41 };

        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_COMM, 0, &r, sizeof(r)), 0);
}

static perfd_text text_of(const char *s) {
        return (perfd_text){ .bytes = s, .length = strlen(s) };
}

static void skip_key(void *userdata, const char *key) {
        (void)userdata, (void)key;
}

static void skip_end(void *userdata) {
        (void)userdata;
}

static void skip_number(void *userdata, const char *key, uint64_t number) {
        (void)userdata, (void)key, (void)number;
}

static void skip_flag(void *userdata, const char *key, bool is) {
        (void)userdata, (void)key, (void)is;
}

static void skip_bytes(void *userdata, const char *key, perfd_text bytes) {
        (void)userdata, (void)key, (void)bytes;
}

/* What is loaded has notes, what is built in has none, and others have nonsense. */
static void put_module(const char *name, const char *id) {
        const uint32_t head[] = { 4, id ? (uint32_t)strlen(id) : 0xffffffff, 3 };
        char command[256], file[256];
        FILE *f;

        (void)snprintf(command, sizeof(command), "mkdir -p %s/modules/%s/notes", directory, name);
        assert_int_equal(system(command), 0);
        (void)snprintf(file, sizeof(file), "%s/modules/%s/notes/.note.gnu.build-id", directory, name);
        f = fopen(file, "we");
        assert_non_null(f);
        assert_true(fwrite(head, sizeof(head), 1, f) == 1 && fwrite("GNU", 4, 1, f) == 1 && fputs(id ? id : "", f) >= 0 && fclose(f) == 0);
}

static void take_id(void *userdata, const char *key, perfd_text text) {
        (void)snprintf((char *)userdata + strlen(userdata), 256 - strlen(userdata), "%s=%.*s ", key ? key : "-", (int)text.length, text.bytes);
}

static void test_modules(void **state) {
        static const perfd_feature_visitor visitor = { .text = take_id, .bytes = take_id, .number = skip_number, .flag = skip_flag,
                                                       .begin_object = skip_key, .end_object = skip_end, .begin_list = skip_key, .end_list = skip_end };
        perfd_recording_writer *w = perfd_recording_writer_new();
        perfd_recording *r = perfd_recording_new();
        char folder[128], command[256], found[256] = "";

        (void)state;
        put_module("ext4", "twenty bytes of ext4");
        put_module("lies", NULL);
        (void)snprintf(folder, sizeof(folder), "%s/modules", directory);
        (void)snprintf(command, sizeof(command), "mkdir %s/built_in", folder);
        assert_int_equal(system(command), 0);
        assert_int_equal(perfd_recording_writer_open(w, path, 0), 0);
        add_event(w);
        assert_int_equal(host_add_modules(w, "/nonexistent"), 0);
        assert_int_equal(host_add_modules(w, folder), 0);
        assert_int_equal(perfd_recording_writer_close(w), 0);
        perfd_recording_writer_free(w);
        assert_int_equal(perfd_recording_open(r, path), 0);
        assert_int_equal(perfd_recording_visit_feature(r, PERF_DATA_FEATURE_BUILD_ID, &visitor, found), 0);
        assert_string_equal(found, "build_id=twenty bytes of ext4 path=[ext4] ");
        perfd_recording_free(r);
        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

static void take_text(void *userdata, const char *key, perfd_text text) {
        unsigned *found = userdata;

        if (strcmp(key ? key : "", "path") == 0)
                *found = *found * 10 + (unsigned)(text.bytes[text.length - 1] - '0');
}

/* Rows that come before the first record and behind it are one section, in their order. */
static void test_build_ids(void **state) {
        static const perfd_feature_visitor visitor = { skip_key, skip_end, skip_key, skip_end, take_text, skip_number, skip_bytes, skip_flag };
        perfd_recording_writer *w = perfd_recording_writer_new();
        perfd_recording *r = perfd_recording_new();
        unsigned found = 0;
        char longest[4097];

        (void)state;
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("id"), text_of("/a1")), PERFD_E_STATE);
        assert_int_equal(perfd_recording_writer_open(w, path, 0), 0);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of(""), text_of("/a1")), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("123456789012345678901"), text_of("/a1")), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("id"), text_of(longest)), PERFD_E_INVALID);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("12345678901234567890"), text_of("/a1")), 0);
        add_event(w);
        put_comm(w);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("id"), text_of("/bcd2")), 0);
        assert_int_equal(perfd_recording_writer_add_build_id(w, 2, text_of("id"), text_of("/bcdefg3")), 0);
        assert_int_equal(perfd_recording_writer_close(w), 0);
        perfd_recording_writer_free(w);
        assert_int_equal(perfd_recording_open(r, path), 0);
        assert_int_equal(perfd_recording_visit_feature(r, PERF_DATA_FEATURE_BUILD_ID, &visitor, &found), 0);
        assert_int_equal(found, 123);
        assert_int_equal(perfd_recording_damage_count(r), 0);
        perfd_recording_free(r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_build_ids, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_modules, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
