/*
 * A main for tests of its operations, with connections that are played, of which operations know nothing but their peer and
 * whether they are gone.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/supervisor/operations/operations.h"

/* ---- what operations call ---------------------------------------------------------------------------------------- */

typedef struct Rig Rig;

struct Connection {
        Peer peer;
        uint64_t id;
        char name;                                /* in the journal */
        int (*in_turn)(Rig *rig, Connection *c); /* while its request runs; NULL: nothing */
        Rig *rig;
        bool is_gone;
};

struct Rig {
        Operations o;
        Closer closer;
        sd_event *event;
        char journal[64]; /* who had a turn: requests by their names, changes by their digits */
        int fails;        /* what a change says, or 0 */
        int n_going;      /* closer_go() less closer_hold() */
        unsigned n_waits; /* closer_go() */
        int due_in_between; /* a change that a trial makes due; -1: none */
        Explanation e;    /* of the last checkpoint */
        int checked;      /* what it said */
};

static Rig *running; /* the closer has no userdata */

static void journal_add(Rig *rig, char who) {
        size_t n = strlen(rig->journal);

        assert_true(n + 1 < sizeof(rig->journal));
        rig->journal[n] = who;
        rig->journal[n + 1] = '\0';
}

const Peer *__wrap_connection_peer(const Connection *c);
const Peer *__wrap_connection_peer(const Connection *c) {
        return &c->peer;
}

uint64_t __wrap_connection_id(const Connection *c);
uint64_t __wrap_connection_id(const Connection *c) {
        return c->id;
}

void __wrap_connection_defer(Connection *c);
void __wrap_connection_defer(Connection *c) {
        assert_non_null(c);
}

int __wrap_connection_resume(Connection *c);
int __wrap_connection_resume(Connection *c) {
        journal_add(c->rig, c->name);
        return c->in_turn ? c->in_turn(c->rig, c) : 0;
}

int __wrap_connection_go_on(Connection *c);
int __wrap_connection_go_on(Connection *c) {
        assert_non_null(c);
        return 0;
}

bool __wrap_connection_is_gone(const Connection *c);
bool __wrap_connection_is_gone(const Connection *c) {
        return c->is_gone;
}

void __wrap_closer_go(Closer *c);
void __wrap_closer_go(Closer *c) {
        assert_ptr_equal(c, &running->closer);
        running->n_going++;
        running->n_waits++;
}

void __wrap_closer_hold(Closer *c);
void __wrap_closer_hold(Closer *c) {
        assert_ptr_equal(c, &running->closer);
        running->n_going--;
}

static int add_io_error; /* 0: it does what it says */

int __real_sd_event_add_io(sd_event *e, sd_event_source **s, int fd, uint32_t events, sd_event_io_handler_t callback, void *userdata);
int __wrap_sd_event_add_io(sd_event *e, sd_event_source **s, int fd, uint32_t events, sd_event_io_handler_t callback, void *userdata);
int __wrap_sd_event_add_io(sd_event *e, sd_event_source **s, int fd, uint32_t events, sd_event_io_handler_t callback, void *userdata) {
        return add_io_error ? add_io_error : __real_sd_event_add_io(e, s, fd, events, callback, userdata);
}

/* ---- a main ------------------------------------------------------------------------------------------------------ */

typedef struct Change {
        Rig *rig;
        char digit;
} Change;

static Change changes[_CHANGE_KIND_MAX];

static int make_change(void *userdata) {
        const Change *c = userdata;

        journal_add(c->rig, c->digit);
        return c->rig->fails;
}

static int setup(void **state) {
        Rig *rig = calloc(1, sizeof(*rig));

        assert_non_null(rig);
        assert_true(sd_event_new(&rig->event) >= 0);
        rig->o.event = rig->event;
        rig->o.closer = &rig->closer;
        rig->due_in_between = -1;
        for (int kind = 0; kind < _CHANGE_KIND_MAX; kind++) {
                changes[kind] = (Change){ rig, (char)('0' + kind) };
                operations_set_handler(&rig->o, (ChangeKind)kind, make_change, &changes[kind]);
        }
        add_io_error = 0;
        running = rig;
        *state = rig;
        return 0;
}

static int teardown(void **state) {
        Rig *rig = *state;

        operations_deinit(&rig->o);
        sd_event_unref(rig->event);
        free(rig);
        return 0;
}

static Connection peer_of(Rig *rig, char name, uid_t uid, bool may_change) {
        static uint64_t last_id;

        return (Connection){ .peer = { .uid = uid, .may_change = may_change }, .id = ++last_id, .name = name, .rig = rig };
}

static void ask(Rig *rig, Connection *c, OperationKind kind) {
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(operations_add(&rig->o, c, kind, &e), 0);
}

/* Until nothing waits; who had a turn. */
static const char *run_all(Rig *rig) {
        rig->journal[0] = '\0';
        for (int i = 0; operations_are_waiting(&rig->o); i++) {
                assert_true(i < 64);
                assert_int_equal(operations_run(&rig->o), 0);
        }
        assert_int_equal(operations_run(&rig->o), 0); /* nothing to do */
        return rig->journal;
}
