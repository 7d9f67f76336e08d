/*
 * From one configuration to another, on a played kernel: what is the same in both is not touched, what differs in a filter or
 * period keeps its id and its counts, and whatever is refused, in the text or by the kernel, leaves everything as it was.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/configuration/configuration.h"

#define HEAD_WITH(size) "version: 1\nrings:\n  size: " size "\ngroups:\n  all:\n    target: host\n    events:\n"
#define HEAD HEAD_WITH("16KiB")
#define KEPT "      - page-faults\n"
#define FILTER(text) "      - event: " RIG_TRACEPOINT "\n        filter: \"" text "\"\n"
#define PERIOD(text) "      - event: minor-faults\n        period: " text "\n"
#define GOES "      - cpu-clock\n"
#define COMES "      - major-faults\n"

static const char old[] = HEAD KEPT FILTER("vec == 1") PERIOD("5") GOES;
static const char new[] = HEAD COMES FILTER("vec == 2") PERIOD("7") KEPT;
static const char new_rings[] = HEAD_WITH("32KiB") COMES FILTER("vec == 2") PERIOD("7") KEPT;

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int apply(Rig *rig, const char *yaml, bool may_wait, Perfd__V1__ReloadReply *ret) {
        const ConfigText text = { .path = "test.yaml", .bytes = yaml, .length = strlen(yaml) };

        *ret = (Perfd__V1__ReloadReply)PERFD__V1__RELOAD_REPLY__INIT;
        return configuration_apply(&rig->supervisor.configuration, &text, 1, may_wait, ret, &rig->e);
}

static int apply_strictly(Rig *rig, const char *yaml) {
        Perfd__V1__ReloadReply reply;

        return apply(rig, yaml, false, &reply);
}

static int apply_old(Rig *rig) {
        return apply_strictly(rig, old);
}

static int apply_new(Rig *rig) {
        return apply_strictly(rig, new);
}

static int apply_new_rings(Rig *rig) {
        return apply_strictly(rig, new_rings);
}

static const PlayedFd *opened(Rig *rig, const char *name) {
        return played_fd(rig_find(rig, name)->opened.fds[1].fd);
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void check_new(Rig *rig) {
        rig_check_opened(rig, "page-faults", true);
        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, "minor-faults", true);
        rig_check_opened(rig, "major-faults", true);
        assert_null(rig_find(rig, "cpu-clock"));
        assert_string_equal(opened(rig, RIG_TRACEPOINT)->filter, "vec == 2");
        assert_int_equal(opened(rig, "minor-faults")->attr.sample_period, 7);
        assert_int_equal(played_count_open(), 5 * RIG_CPUS);
}

static void test_differences(void **state) {
        Perfd__V1__ReloadReply reply;
        uint64_t kept, changed;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(apply(&rig, old, false, &reply), 0);
        assert_int_equal(reply.added, 4);
        played_occur(3);
        kept = opened(&rig, "page-faults")->id;
        changed = rig_find(&rig, RIG_TRACEPOINT)->event->id;
        assert_int_equal(apply(&rig, new, false, &reply), 0);
        assert_int_equal(reply.added, 1);
        assert_int_equal(reply.removed, 1);
        assert_int_equal(reply.changed, 2);
        assert_int_equal(reply.kept, 1);
        check_new(&rig);
        assert_int_equal(opened(&rig, "page-faults")->id, kept);
        assert_int_equal(rig_find(&rig, RIG_TRACEPOINT)->event->id, changed);
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 5 * RIG_CPUS);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 5 * RIG_CPUS);
        assert_int_equal(rig_occurred(&rig, "major-faults"), 2 * RIG_CPUS);
        rig_stop(&rig);
}

/* What differs in more than that is another event under its name: its counts begin anew. */
static void test_replaced(void **state) {
        static const char other[] = HEAD "      - event: page-faults\n        name: " RIG_TRACEPOINT "\n";
        Perfd__V1__ReloadReply reply;
        uint64_t before;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(apply(&rig, HEAD FILTER("vec == 1"), false, &reply), 0);
        before = rig_find(&rig, RIG_TRACEPOINT)->event->id;
        played_occur(3);
        assert_int_equal(apply(&rig, other, false, &reply), 0);
        assert_int_equal(reply.changed, 1);
        assert_int_equal(reply.added + reply.removed + reply.kept, 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_true(rig_find(&rig, RIG_TRACEPOINT)->event->id > before);
        assert_int_equal(opened(&rig, RIG_TRACEPOINT)->attr.type, PERF_TYPE_SOFTWARE);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 0);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
        rig_stop(&rig);
}

static void test_rings(void **state) {
        Perfd__V1__ReloadReply reply;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(apply_old(&rig), 0);
        played_occur(3);
        assert_int_equal(apply(&rig, new_rings, false, &reply), 0);
        assert_int_equal(reply.ring_size, 32 * 1024);
        check_new(&rig);
        assert_int_equal(rig.supervisor.readers.by_slot[1].ring.size, 32 * 1024);
        assert_int_equal(rig.supervisor.settings.config->ring_size, 32 * 1024);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* What a client has added is not the configuration's: it stays, and its name is taken. */
static void test_beside_clients(void **state) {
        static const char *const added[] = { "major-faults" };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(apply_old(&rig), 0);
        assert_int_equal(rig_add(&rig, added, 1), 0);
        assert_int_equal(apply_new(&rig), REFUSED_EXISTS);
        assert_int_equal(apply_strictly(&rig, HEAD KEPT), 0);
        rig_check_opened(&rig, "major-faults", true);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static int reload(Rig *rig) {
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;

        return configuration_reload(&rig->supervisor.configuration, NULL, &reply, &rig->e);
}

static void test_file_is_refused(void **state) {
        static const struct {
                const char *yaml, *says;
        } bad[] = {
                { HEAD "      - pages-faults\n", "perfd.yaml:8:9: " },
                { HEAD KEPT KEPT, "perfd.yaml:9:9: " },
                { HEAD KEPT "version: 2\n", "version" },
                { HEAD KEPT "  two:\n    target: nobody\n    events: [cpu-clock]\n", "nobody" },
                { HEAD KEPT "colour: red\n", "colour" },
                { HEAD COMES "      - no:tracepoint\nstrict: true\n", "no:tracepoint" },
                { HEAD_WITH("32KiB") COMES "      - no:tracepoint\nstrict: true\n", "no:tracepoint" },
                { "", "version" },
        };
        _cleanup_free_ char *before = NULL;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(reload(&rig), REFUSED_INVALID); /* there is none */
        rig_write_config(&rig, old);
        assert_int_equal(reload(&rig), 0);
        played_occur(3);
        before = rig_picture(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_free_ char *after = NULL;

                rig_write_config(&rig, bad[i].yaml);
                assert_true(reload(&rig) > 0);
                if (!strstr(rig.e.text, bad[i].says))
                        fail_msg("\"%s\" does not say \"%s\"", rig.e.text, bad[i].says);
                after = rig_picture(&rig);
                assert_string_equal(after, before);
                assert_int_equal(rig.supervisor.settings.config->n_events, 4);
        }
        rig_write_config(&rig, new);
        assert_int_equal(reload(&rig), 0);
        check_new(&rig);
        rig_stop(&rig);
}

/* ---- the kernel refuses ------------------------------------------------------------------------------------------ */

static void test_open_fails(void **state) {
        static const int errors[] = { EMFILE, ENOMEM, EACCES };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                assert_int_equal(rig_fail_each(PLAYED_OPEN, errors[i], apply_old, apply_new), 3 * RIG_CPUS);
}

/*
 * Until the old ones are disabled: what is added is redirected, asked for its id and enabled twice; what replaces another one too,
 * and one of them has a filter. Then the old ones are disabled, twice, also the one that goes.
 */
static void test_ioctl_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, apply_old, apply_new), RIG_CPUS * (4 + 4 + 1 + 4 + 2 + 2 + 2));
}

/* Other rings were there already: they are made as before once more. The ids of what is open are others then. */
static void check_refused_rings(Rig *rig, PlayedCall call, int r, const char *before) {
        assert_int_not_equal(r, 0);
        if (r < 0)
                return;
        rig_check_opened(rig, "page-faults", true);
        rig_check_opened(rig, "cpu-clock", true);
        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, "minor-faults", true);
        rig_check_carriers(rig, true);
        assert_null(rig_find(rig, "major-faults"));
        assert_string_equal(opened(rig, RIG_TRACEPOINT)->filter, "vec == 1");
        assert_int_equal(opened(rig, "minor-faults")->attr.sample_period, 5);
        assert_int_equal(rig->supervisor.readers.by_slot[1].ring.size, 16 * 1024);
        assert_int_equal(rig->supervisor.settings.config->ring_size, 16 * 1024);
        assert_int_equal(rig_occurred(rig, "page-faults"), 3 * RIG_CPUS);
        assert_int_equal(played_count_open(), 5 * RIG_CPUS);
}

static void test_rings_and_events(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, apply_old, apply_new_rings, check_refused_rings),
                         3 + (5 + 3) * RIG_CPUS); /* what is new is tried once each, before there are rings */
        assert_int_equal(rig_fail_each_as(PLAYED_MMAP, EPERM, apply_old, apply_new_rings, check_refused_rings), RIG_CPUS);
        assert_true(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, apply_old, apply_new_rings, check_refused_rings) > 30);
}

/* The process ends; what was read of the text, and all that was made of it, is freed: that is for the sanitizer. */
static void test_without_memory(void **state) {
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, apply_old, apply_old) > 50);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_differences),
                cmocka_unit_test(test_replaced),
                cmocka_unit_test(test_rings),
                cmocka_unit_test(test_beside_clients),
                cmocka_unit_test(test_file_is_refused),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_ioctl_fails),
                cmocka_unit_test(test_rings_and_events),
                cmocka_unit_test(test_without_memory),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
