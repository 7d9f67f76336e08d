/*
 * What clients ask for, on a played kernel, over the sockets of perfd: what they are answered, and what is so afterwards. What a
 * request is refused for is named by a word that programs rely on.
 */
#include "tests/unit/supervisor-client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

#define BODY(name) PERFD__V1__REQUEST__BODY_##name

static Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

static void begin(Rig *rig, RigClient *c) {
        rig_start(rig);
        rig_become(0);
        played_write_samples(true);
        rig_connect(rig, c, true);
}

static void end(Rig *rig, RigClient *c) {
        rig_hang_up(c);
        rig_stop(rig);
}

static Perfd__V1__EventSpec spec_of(const char *event, const char *name) {
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;

        spec.event = (char *)event;
        spec.name = (char *)name;
        return spec;
}

static Perfd__V1__AddRequest add_of(Perfd__V1__EventSpec **specs, size_t n) {
        Perfd__V1__AddRequest q = PERFD__V1__ADD_REQUEST__INIT;

        q.events = specs;
        q.n_events = n;
        return q;
}

static void add(RigClient *c, const char *event, const char *name) {
        Perfd__V1__EventSpec spec = spec_of(event, name), *specs[] = { &spec };
        Perfd__V1__AddRequest q = add_of(specs, 1);

        rig_say(c, BODY(ADD), &q);
}

static Perfd__V1__SelectRequest select_of(char **names) {
        Perfd__V1__SelectRequest q = PERFD__V1__SELECT_REQUEST__INIT;

        q.names = names;
        q.n_names = 1;
        return q;
}

/* Some virtual machines let breakpoints be opened, and report none: in this kernel nothing occurs by itself. */
static void test_breakpoint_that_never_counts(void **state) {
        static const char *const events[] = { "mem:0x1000:w", "page-faults" };
        Rig rig;
        RigClient c;

        begin(&rig, &c);
        for (size_t i = 0; i < 2; i++) {
                Perfd__V1__EventSpec spec = spec_of(events[i], NULL), *specs[] = { &spec };
                Perfd__V1__AddRequest q = add_of(specs, 1);
                Perfd__V1__ServerMessage *m = rig_ask(&c, BODY(ADD), &q);

                assert_int_equal(m->response->added->n_notes, i == 0);
                if (i == 0)
                        assert_string_equal(m->response->added->notes[0], "mem:0x1000:w: breakpoints open on this machine and never count, "
                                            "which `perfctl doctor` shows too: there will be no samples");
                perfd__v1__server_message__free_unpacked(m, NULL);
        }
        end(&rig, &c);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static void test_changes(void **state) {
        Perfd__V1__SetFilterRequest filter = PERFD__V1__SET_FILTER_REQUEST__INIT;
        Perfd__V1__SetPeriodRequest period = PERFD__V1__SET_PERIOD_REQUEST__INIT;
        char *names[] = { (char *)"faults" }, *group[] = { (char *)"@default" };
        Perfd__V1__SelectRequest one = select_of(names), all = select_of(group);
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        add(&c, "page-faults", "faults");
        add(&c, RIG_TRACEPOINT, NULL);
        rig_check_opened(&rig, "faults", true);
        rig_say(&c, BODY(DISABLE), &one);
        rig_check_opened(&rig, "faults", false);
        rig_say(&c, BODY(ENABLE), &all);
        rig_check_opened(&rig, "faults", true);
        filter.name = (char *)RIG_TRACEPOINT;
        filter.filter = (char *)"vec == 3";
        rig_say(&c, BODY(SET_FILTER), &filter);
        assert_string_equal(played_fd(rig_find(&rig, RIG_TRACEPOINT)->opened.fds[0].fd)->filter, "vec == 3");
        period.name = (char *)"faults";
        period.period = 7;
        rig_say(&c, BODY(SET_PERIOD), &period);
        assert_int_equal(played_fd(rig_find(&rig, "faults")->opened.fds[0].fd)->attr.sample_period, 7);
        rig_say(&c, BODY(REMOVE), &one);
        assert_null(rig_find(&rig, "faults"));
        rig_say_refused(&c, BODY(REMOVE), &one, "unknown-event");
        rig_say_refused(&c, BODY(SET_PERIOD), &period, "unknown-event");
        filter.filter = (char *)"vec == 3)";
        rig_say_refused(&c, BODY(SET_FILTER), &filter, "bad-filter");
        end(&rig, &c);
}

/* They go with who has added them, and stay if that is not asked for. */
static void test_while_connected(void **state) {
        Perfd__V1__EventSpec spec = spec_of("page-faults", NULL), *specs[] = { &spec };
        Perfd__V1__AddRequest q = add_of(specs, 1);
        RigClient c, other;
        Rig rig;

        begin(&rig, &c);
        rig_connect(&rig, &other, true);
        q.while_connected = true;
        rig_say(&other, BODY(ADD), &q);
        add(&other, "minor-faults", NULL);
        rig_hang_up(&other);
        assert_null(rig_find(&rig, "page-faults"));
        rig_check_opened(&rig, "minor-faults", true);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
        q.keep = true;
        rig_say_refused(&c, BODY(ADD), &q, "bad-request");
        end(&rig, &c);
}

static void test_refused(void **state) {
        static const struct {
                Perfd__V1__EventSpec spec;
                const char *reason;
        } bad[] = {
                { { .event = (char *)"nothing" }, "unknown-event" },
                { { .event = (char *)"page-fault" }, "unknown-event" },
                { { .event = (char *)"" }, "bad-event" },
                { { .event = (char *)"page-faults", .filter = (char *)"a == 1" }, "bad-event" },
                { { .event = (char *)"page-faults", .args = (char *)"a=1" }, "bad-event" },
                { { .event = (char *)"page-faults", .period = 1, .frequency = 1 }, "bad-event" },
                { { .event = (char *)"page-faults", .maxactive = 3 }, "bad-event" },
                { { .event = (char *)"page-faults", .fallback = (char *)"cpu-clock" }, "bad-event" },
                { { .event = (char *)"no:tracepoint" }, "unknown-event" },
                { { .event = (char *)"there" }, "unknown-event" },
                { { .event = (char *)"minor-faults", .name = (char *)"there" }, "exists" },
        };
        _cleanup_free_ char *before = NULL;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        add(&c, "cpu-clock", "there");
        before = rig_picture(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                Perfd__V1__EventSpec spec = spec_of(bad[i].spec.event, bad[i].spec.name), *specs[] = { &spec };
                Perfd__V1__AddRequest q = add_of(specs, 1);
                _cleanup_free_ char *after = NULL;

                spec.filter = bad[i].spec.filter;
                spec.args = bad[i].spec.args;
                spec.period = bad[i].spec.period;
                spec.frequency = bad[i].spec.frequency;
                spec.maxactive = bad[i].spec.maxactive;
                spec.fallback = bad[i].spec.fallback;
                rig_say_refused(&c, BODY(ADD), &q, bad[i].reason);
                after = rig_picture(&rig);
                assert_string_equal(after, before);
        }
        end(&rig, &c);
}

/* ---- looks ------------------------------------------------------------------------------------------------------- */

static void test_list(void **state) {
        Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        add(&c, RIG_TRACEPOINT, NULL);
        add(&c, "page-faults", "faults");
        q.fields = true;
        m = rig_ask(&c, BODY(LIST), &q);
        assert_int_equal(m->response->list->n_events, 2);
        assert_string_equal(m->response->list->events[0]->spec->name, RIG_TRACEPOINT);
        assert_string_equal(m->response->list->events[1]->spec->name, "faults");
        assert_true(m->response->list->events[0]->enabled);
        assert_true(m->response->list->events[0]->n_fields > 0);
        perfd__v1__server_message__free_unpacked(m, NULL);
        q.glob = (char *)"irq:*";
        m = rig_ask(&c, BODY(LIST), &q);
        assert_int_equal(m->response->list->n_events, 1);
        perfd__v1__server_message__free_unpacked(m, NULL);
        end(&rig, &c);
}

static void test_available(void **state) {
        Perfd__V1__AvailableRequest q = PERFD__V1__AVAILABLE_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        rig_make_tracepoint(&rig, "sched:sched_process_exec");
        q.glob = (char *)"*:s*";
        q.fields = true;
        m = rig_ask(&c, BODY(AVAILABLE), &q);
        assert_int_equal(m->response->available->n_events, 2);
        assert_string_equal(m->response->available->events[0]->event, RIG_TRACEPOINT);
        assert_string_equal(m->response->available->events[0]->kind, "tracepoint");
        assert_true(m->response->available->events[0]->n_fields > 0);
        perfd__v1__server_message__free_unpacked(m, NULL);
        q.glob = (char *)"page-faults";
        m = rig_ask(&c, BODY(AVAILABLE), &q);
        assert_int_equal(m->response->available->n_events, 1);
        perfd__v1__server_message__free_unpacked(m, NULL);
        end(&rig, &c);
}

static void test_ledger_and_status(void **state) {
        Perfd__V1__LedgerRequest q = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        add(&c, "page-faults", NULL);
        played_occur(5);
        m = rig_ask(&c, BODY(LEDGER), &q);
        assert_int_equal(m->response->ledger->n_events, RIG_CPUS);
        for (size_t i = 0; i < RIG_CPUS; i++) {
                assert_int_equal(m->response->ledger->events[i]->occurred, 5);
                assert_int_equal(m->response->ledger->events[i]->filtered, 5); /* nobody wants it */
                assert_true(m->response->ledger->events[i]->balanced);
                assert_true(m->response->ledger->rings[i]->balanced);
        }
        perfd__v1__server_message__free_unpacked(m, NULL);
        m = rig_ask(&c, BODY(STATUS), &empty);
        assert_string_equal(m->response->daemon->clock, "monotonic");
        assert_int_equal(m->response->daemon->n_cpus, RIG_CPUS);
        assert_int_equal(m->response->daemon->n_events, 1);
        perfd__v1__server_message__free_unpacked(m, NULL);
        m = rig_ask(&c, BODY(DOCTOR), &empty);
        assert_true(m->response->doctor->n_rows > 10);
        perfd__v1__server_message__free_unpacked(m, NULL);
        end(&rig, &c);
}

static void test_hello(void **state) {
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient c, other;
        Rig rig;

        begin(&rig, &c);
        rig_connect(&rig, &other, false);
        hello.program = (char *)"test";
        rig_say_refused(&c, BODY(HELLO), &hello, "version");
        hello.protocol = PERFD_PROTOCOL;
        m = rig_ask(&c, BODY(HELLO), &hello);
        assert_true(m->response->hello->may_change);
        perfd__v1__server_message__free_unpacked(m, NULL);
        m = rig_ask(&other, BODY(HELLO), &hello);
        assert_false(m->response->hello->may_change);
        perfd__v1__server_message__free_unpacked(m, NULL);
        rig_say_refused(&other, BODY(RELOAD), &empty, "read-only");
        rig_say_refused(&c, BODY(ROOM), &empty, "bad-request");
        rig_say_refused(&c, BODY(_NOT_SET), NULL, "bad-request");
        rig_hang_up(&other);
        end(&rig, &c);
}

/* ---- configurations ---------------------------------------------------------------------------------------------- */

#define HEAD "version: 1\nrings:\n  size: 16KiB\ngroups:\n  all:\n    target: host\n    events:\n"

static void test_configurations(void **state) {
        Perfd__V1__ValidateRequest validate = PERFD__V1__VALIDATE_REQUEST__INIT;
        Perfd__V1__ApplyRequest apply = PERFD__V1__APPLY_REQUEST__INIT;
        Perfd__V1__PlanRequest plan = PERFD__V1__PLAN_REQUEST__INIT;
        _cleanup_free_ char *before = NULL, *after = NULL;
        Perfd__V1__ServerMessage *m;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        apply.yaml = (char *)HEAD "      - page-faults\n      - cpu-clock\n      - event: minor-faults\n        period: 3\n";
        rig_say(&c, BODY(APPLY), &apply);
        before = rig_picture(&rig);
        validate.yaml = (char *)HEAD "      - nothing\n      - major-faults\n      - no:tracepoint\n";
        m = rig_ask(&c, BODY(VALIDATE), &validate);
        assert_int_equal(m->response->validated->n_errors, 1);
        perfd__v1__server_message__free_unpacked(m, NULL);
        plan.yaml = (char *)HEAD "      - page-faults\n      - major-faults\n      - no:tracepoint\n"
                                 "      - event: minor-faults\n        period: 4\n";
        plan.may_wait = true;
        m = rig_ask(&c, BODY(PLAN), &plan);
        assert_int_equal(m->response->plan->n_added, 1);
        assert_int_equal(m->response->plan->n_removed, 1);
        assert_int_equal(m->response->plan->n_kept, 1);
        assert_int_equal(m->response->plan->n_changed, 1);
        assert_int_equal(m->response->plan->n_pending, 1);
        assert_string_equal(m->response->plan->changed[0]->differences[0]->field, "period");
        perfd__v1__server_message__free_unpacked(m, NULL);
        after = rig_picture(&rig);
        assert_string_equal(after, before);
        apply.yaml = plan.yaml;
        rig_say_refused(&c, BODY(APPLY), &apply, "unknown-event");
        apply.may_wait = true;
        m = rig_ask(&c, BODY(APPLY), &apply);
        assert_int_equal(m->response->reloaded->added, 1);
        assert_int_equal(m->response->reloaded->pending, 1);
        perfd__v1__server_message__free_unpacked(m, NULL);
        rig_check_opened(&rig, "major-faults", true);
        rig_say_refused(&c, BODY(RELOAD), &empty, "bad-config"); /* it was started without */
        end(&rig, &c);
}

/* Whether this doctor opens events, as any does that examines the host. */
static bool examines(RigClient *c) {
        played_fail(PLAYED_OPEN, 1, EACCES);
        rig_say(c, BODY(DOCTOR), &empty);
        return played_has_failed();
}

/* Strangers get one together in a second, whoever they are, and those who have privileges one each time that they ask. */
static void test_doctors(void **state) {
        RigClient root, one, other;
        Rig rig;

        begin(&rig, &root);
        rig_become(65534);
        rig_connect(&rig, &one, false);
        rig_become(65533);
        rig_connect(&rig, &other, false);
        assert_true(examines(&one));
        assert_false(examines(&one));
        assert_false(examines(&other));
        assert_true(examines(&root));
        assert_true(examines(&root));
        assert_false(examines(&one)); /* root's is as good */
        played_let_pass(NSEC_PER_SEC);
        assert_true(examines(&other));
        assert_false(examines(&one));
        rig_hang_up(&one);
        rig_hang_up(&other);
        end(&rig, &root);
}

/* What takes long to be closed main leaves to the closer, but never a second one while that has one. */
static void test_fd_of_doctor(void **state) {
        RigClient root;
        Closer *closer;
        Rig rig;
        int fd = inotify_init1(IN_CLOEXEC);

        if (fd < 0) {
                print_message("skipped: inotify: %s\n", strerror(errno));
                skip();
        }
        close(fd);
        begin(&rig, &root);
        closer = &rig.supervisor.closer;
        closer->held_most = 3600 * NSEC_PER_SEC;
        assert_int_equal(closer_start(closer), 0);
        closer_hold(closer);
        for (unsigned i = 0; i < 3; i++) {
                rig_say(&root, BODY(DOCTOR), &empty);
                assert_int_equal(atomic_load(&closer->n_pending), 1);
        }
        closer_go(closer);
        closer_stop(closer, NULL, NULL);
        assert_int_equal(atomic_load(&closer->n_pending), 0);
        assert_int_equal(atomic_load(&rig.supervisor.requests.n_doctor_fds), 0);
        end(&rig, &root);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_changes),
                cmocka_unit_test(test_while_connected),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_breakpoint_that_never_counts),
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_available),
                cmocka_unit_test(test_ledger_and_status),
                cmocka_unit_test(test_hello),
                cmocka_unit_test(test_configurations),
                cmocka_unit_test(test_doctors),
                cmocka_unit_test(test_fd_of_doctor),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
