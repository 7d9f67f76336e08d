/*
 * What a client asks for that changes nothing, on a played kernel, when one allocation of perfd fails, for each of them: it is
 * refused, or its connection is closed, and perfd is as it was before. And what is refused before it begins.
 */
#include "tests/unit/supervisor-client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"

#define NOBODY 65534
#define BODY(name) PERFD__V1__REQUEST__BODY_##name
#define YAML "version: 1\ngroups:\n  all:\n    target: host\n    events:\n      - cpu-clock\n" \
             "      - event: " RIG_TRACEPOINT "\n        name: another\n        filter: \"vec == 2\"\n      - minor-faults\n"

typedef struct Asked {
        Perfd__V1__Request__BodyCase kind;
        void *message;
} Asked;

static Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

static Perfd__V1__Request request_of(const Asked *q) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;

        request.body_case = q->kind;
        request.status = q->message; /* all of them are pointers at the same place */
        return request;
}

static void begin(Rig *rig, RigClient *c) {
        static const char *const events[] = { "page-faults", RIG_TRACEPOINT };

        rig_start(rig);
        assert_int_equal(rig_add(rig, events, 2), 0);
        rig_become(NOBODY);
        rig_connect(rig, c, false);
}

static void end(Rig *rig, RigClient *c) {
        rig_hang_up(c);
        rig_stop(rig);
}

/* It has hung up. */
static bool is_closed(const RigClient *c) {
        char byte;

        return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* False: there is no n-th allocation. */
static bool fail_one(const Asked *q, unsigned n, unsigned *refused) {
        _cleanup_free_ char *before = NULL, *after = NULL;
        Perfd__V1__Request request = request_of(q);
        Perfd__V1__ServerMessage *m;
        bool has_failed;
        RigClient c;
        Rig rig;

        begin(&rig, &c);
        before = rig_picture(&rig);
        rig_post(&c, &request);
        played_fail(PLAYED_ALLOCATION, n, ENOMEM);
        rig_turn(&rig); /* perfd goes on, which is asserted there */
        has_failed = played_has_failed();
        played_fail(PLAYED_ALLOCATION, 0, 0);
        m = rig_receive(&c);
        if (m && m->response->status != PERFD__V1__STATUS__STATUS_OK) {
                assert_true(has_failed);
                assert_string_equal(m->response->reason, "no-memory");
                ++*refused;
        } else if (!m)
                assert_true(has_failed && is_closed(&c));
        if (m)
                perfd__v1__server_message__free_unpacked(m, NULL);
        after = rig_picture(&rig);
        assert_string_equal(after, before);
        end(&rig, &c);
        return has_failed;
}

static void fail_each(const Asked *q, unsigned least) {
        unsigned n = 0, refused = 0;

        while (fail_one(q, n + 1, &refused))
                n++;
        printf("kind %d: %u allocations, %u refused\n", (int)q->kind, n, refused);
        assert_true(refused > least);
}

static void test_plan(void **state) {
        Perfd__V1__PlanRequest q = PERFD__V1__PLAN_REQUEST__INIT;

        q.yaml = (char *)YAML;
        fail_each(&(Asked){ BODY(PLAN), &q }, 100);
}

static void test_validate(void **state) {
        Perfd__V1__ValidateRequest q = PERFD__V1__VALIDATE_REQUEST__INIT;

        q.yaml = (char *)YAML;
        fail_each(&(Asked){ BODY(VALIDATE), &q }, 50);
}

static void test_available(void **state) {
        Perfd__V1__AvailableRequest q = PERFD__V1__AVAILABLE_REQUEST__INIT;

        q.glob = (char *)"irq:*";
        q.fields = true;
        fail_each(&(Asked){ BODY(AVAILABLE), &q }, 10);
}

static void test_doctor(void **state) {
        fail_each(&(Asked){ BODY(DOCTOR), &empty }, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plan),
                cmocka_unit_test(test_validate),
                cmocka_unit_test(test_available),
                cmocka_unit_test(test_doctor),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
