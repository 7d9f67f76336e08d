/*
 * Cgroups that come and go under the names that events have, on a played kernel: what came is counted from then on, what went keeps
 * its counts, and one that was made anew under its name is counted as both. What cannot be opened is left out until the next word.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"

/* ---- a hierarchy ------------------------------------------------------------------------------------------------- */

static const char *at(const Rig *rig, const char *path) {
        static char whole[128];

        (void)snprintf(whole, sizeof(whole), "%s/cgroup%s", rig->folder, path);
        return whole;
}

static void make(const Rig *rig, const char *path) {
        assert_int_equal(mkdir(at(rig, path), 0755), 0);
}

static void take_away(const Rig *rig, const char *path) {
        assert_int_equal(rmdir(at(rig, path)), 0);
}

static void make_hierarchy(Rig *rig) {
        CgroupHierarchy *h = &rig->supervisor.host.cgroups;

        make(rig, "");
        h->path = strdup(at(rig, ""));
        h->root = strdup("/");
        h->host = strdup(rig->folder);
        assert_true(h->path && h->root && h->host);
        make(rig, "/web");
        make(rig, "/web/a");
        make(rig, "/web/b");
        make(rig, "/db");
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

/* By what never fails here. */
static char *copy(const char *text) {
        char *to;

        assert_true(asprintf(&to, "%s", text) > 0);
        return to;
}

static int add_on(Rig *rig, const char *event, const char *cgroup, const char *unit, bool may_be_absent) {
        EventSpec spec = { .event = copy(event) };
        Strings *names = cgroup ? &spec.cgroups : &spec.units;

        names->items = aligned_alloc(sizeof(*names->items), sizeof(*names->items));
        assert_non_null(names->items);
        names->items[names->n++] = copy(cgroup ? cgroup : unit);
        return rig_add_specs(rig, &spec, 1, &(AddOptions){ .is_written = may_be_absent });
}

static int prepare(Rig *rig) {
        int r;

        make_hierarchy(rig);
        r = add_on(rig, "page-faults", "web/*", NULL, false);
        return r == 0 ? add_on(rig, "minor-faults", "db", NULL, false) : r;
}

static int prepare_nothing(Rig *rig) {
        make_hierarchy(rig);
        return 0;
}

static int add_glob(Rig *rig) {
        return add_on(rig, "page-faults", "web/*", NULL, false);
}

static int look(Rig *rig) {
        return changes_on_cgroups(&rig->supervisor.changes);
}

static int one_comes(Rig *rig) {
        make(rig, "/web/c");
        return look(rig);
}

/* Anew under its name, and one more. */
static int one_is_exchanged(Rig *rig) {
        take_away(rig, "/web/a");
        make(rig, "/web/a");
        make(rig, "/web/c");
        return look(rig);
}

/* It is open on these, n of them, on each CPU, and nothing of it leaves any more. */
static void check_on(Rig *rig, const char *name, size_t n) {
        const Registration *g = rig_find(rig, name);

        assert_non_null(g);
        assert_int_equal(g->opened.n, n * RIG_CPUS);
        assert_int_equal(g->pending.n, 0);
        for (size_t i = 0; i < g->opened.n; i++) {
                const PerfFd *fd = &g->opened.fds[i];

                assert_true(fd->is_cgroup);
                assert_false(fd->leaves);
                assert_false(fd->is_successor);
                assert_true(played_fd(fd->fd)->is_on);
                assert_true(played_fd(fd->fd)->pid >= 0);
                for (size_t k = 0; k < i; k++)
                        assert_true(g->opened.fds[k].target_id != fd->target_id || g->opened.fds[k].slot != fd->slot);
        }
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_come_and_go(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        check_on(&rig, "page-faults", 2);
        played_occur(2);
        assert_int_equal(one_comes(&rig), 0);
        check_on(&rig, "page-faults", 3);
        check_on(&rig, "minor-faults", 1);
        played_occur(3);
        take_away(&rig, "/web/a");
        take_away(&rig, "/web/b");
        assert_int_equal(look(&rig), 0);
        check_on(&rig, "page-faults", 1);
        played_occur(4);
        assert_int_equal(rig_occurred(&rig, "page-faults"), (2 * 2 + 3 * 3 + 4) * RIG_CPUS);
        assert_int_equal(rig_occurred(&rig, "minor-faults"), (2 + 3 + 4) * RIG_CPUS);
        assert_int_equal(played_count_open(), (1 + 1 + 1) * RIG_CPUS);
        rig_stop(&rig);
}

/* The new one counts before the old one ends, and nothing twice. */
static void test_made_anew(void **state) {
        uint64_t before, n;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        before = rig_find(&rig, "minor-faults")->opened.fds[0].target_id;
        played_occur(2);
        take_away(&rig, "/db");
        make(&rig, "/db");
        played_keep_occurring(true);
        assert_int_equal(look(&rig), 0);
        n = played_keep_occurring(false);
        assert_true(n > 0);
        check_on(&rig, "minor-faults", 1);
        assert_int_not_equal(rig_find(&rig, "minor-faults")->opened.fds[0].target_id, before);
        assert_null(rig_find(&rig, "minor-faults")->absent);
        played_occur(3);
        assert_int_equal(rig_occurred(&rig, "minor-faults"), (2 + n + 3) * RIG_CPUS);
        assert_int_equal(played_count_open(), (1 + 2 + 1) * RIG_CPUS);
        rig_stop(&rig);
}

/* A unit that is not there yet, starts, ends, and starts somewhere else. */
static void test_absent(void **state) {
        const Registration *g;
        Rig rig;

        rig_start(&rig);
        make_hierarchy(&rig);
        assert_int_equal(add_on(&rig, "page-faults", NULL, "web.service", false), REFUSED_NOT_FOUND);
        assert_string_equal(rig.e.reason, "unknown-unit");
        assert_int_equal(add_on(&rig, "page-faults", NULL, "web.service", true), 0);
        check_on(&rig, "page-faults", 0);
        g = rig_find(&rig, "page-faults");
        assert_string_equal(g->absent, "there is no unit web.service now");
        make(&rig, "/web/web.service");
        assert_int_equal(look(&rig), 0);
        check_on(&rig, "page-faults", 1);
        assert_null(g->absent);
        played_occur(2);
        take_away(&rig, "/web/web.service");
        assert_int_equal(look(&rig), 0);
        check_on(&rig, "page-faults", 0);
        assert_string_equal(g->absent, "there is no unit web.service now");
        make(&rig, "/db/web.service");
        assert_int_equal(look(&rig), 0);
        check_on(&rig, "page-faults", 1);
        played_occur(1);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* Names that no event has any more are not looked at; without any the watch ends. */
static void test_unfollow(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        assert_int_equal(add_on(&rig, "major-faults", "web/*", NULL, false), 0);
        assert_int_equal(rig_remove(&rig, "page-faults"), 0);
        assert_int_equal(one_comes(&rig), 0);
        check_on(&rig, "major-faults", 3);
        assert_int_equal(rig_remove(&rig, "major-faults"), 0);
        make(&rig, "/web/d");
        take_away(&rig, "/db");
        assert_int_equal(look(&rig), 0);
        check_on(&rig, "minor-faults", 0);
        assert_non_null(rig.supervisor.changes.cgroup_watch);
        assert_int_equal(rig_remove(&rig, "minor-faults"), 0);
        assert_null(rig.supervisor.changes.cgroup_watch);
        assert_int_equal(played_count_open(), RIG_CPUS);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

/* That a client asks for it is refused as a whole. */
static void test_add_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, prepare_nothing, add_glob), 2 * RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_nothing, add_glob), 2 * RIG_CPUS * 4 + 2 * RIG_CPUS);
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_nothing, add_glob) > 30);
}

/* What came is left out, all of it; what went has gone. The next word brings what is there then. */
static void check_next_word(Rig *rig, PlayedCall call, int r, const char *before) {
        assert_int_equal(r, 0);
        check_on(rig, "minor-faults", 1);
        make(rig, "/web/d");
        assert_int_equal(look(rig), 0);
        check_on(rig, "page-faults", 4);
        assert_int_equal(played_count_open(), (1 + 4 + 1) * RIG_CPUS);
        played_occur(2);
        assert_int_equal(rig_occurred(rig, "page-faults"), (2 * 3 + 4 * 2) * RIG_CPUS);
}

static unsigned n_fatal;

static void test_one_comes_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare, one_comes, check_next_word), RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare, one_comes, check_next_word), RIG_CPUS * (2 + 2));
}

/* What went is disabled, twice, when what came is counted already: that is not refused, and ends the process. */
static void check_exchange(Rig *rig, PlayedCall call, int r, const char *before) {
        if (r == 0)
                check_next_word(rig, call, r, before);
        else
                assert_int_equal(r, -ENOMEM);
        n_fatal += r != 0;
}

static void test_exchange_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare, one_is_exchanged, check_next_word), 2 * RIG_CPUS);
        n_fatal = 0;
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare, one_is_exchanged, check_exchange), RIG_CPUS * (2 * 4 + 2));
        assert_int_equal(n_fatal, 2 * RIG_CPUS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_come_and_go),
                cmocka_unit_test(test_made_anew),
                cmocka_unit_test(test_absent),
                cmocka_unit_test(test_unfollow),
                cmocka_unit_test(test_add_fails),
                cmocka_unit_test(test_one_comes_fails),
                cmocka_unit_test(test_exchange_fails),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
