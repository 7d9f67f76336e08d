/*
 * For the supervisor: operations, which are what main does that changes something or costs much. One runs at a time, outside
 * of the event loop; at its checkpoints (base/checkpoint.h) the loop has a turn, in which requests that only look are
 * answered. Whatever would change something waits until the operation is over, or until the next checkpoint of a trial, which is
 * suspended for it. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/closer.h"
#include "daemon/control/control.h"
#include "daemon/supervisor/operations/notes.h"

/* Changes that no client asks for. They run before what clients wait for, in this order. */
typedef enum ChangeKind {
        CHANGE_STOP,      /* a signal says so */
        CHANGE_READERS,   /* one that did not answer does again */
        CHANGE_HOTPLUG,   /* CPUs come or go */
        CHANGE_NOTICES,   /* of the dispatcher: streams that end */
        CHANGE_CGROUPS,   /* they come or go */
        CHANGE_ORPHANS,   /* events whose connection is gone */
        CHANGE_RELOAD,    /* SIGHUP */
        CHANGE_PENDING,   /* what could not be opened is tried again */
        CHANGE_STATE,     /* persistent events that could not be stored are tried again */
        CHANGE_LOSSES,    /* something was lost, which the log is to say */
        _CHANGE_KIND_MAX,
} ChangeKind;

/* Makes a change, where what it is about is. Negative: fatal. */
typedef struct ChangeHandler {
        int (*make)(void *userdata);
        void *userdata;
} ChangeHandler;

/* A request that waits for its turn, or runs. */
typedef struct Operation {
        struct Operation *next;
        Connection *connection;
        uint64_t connection_id;
        uid_t uid;
        bool is_control;   /* from the control socket: before those of the stream socket */
        bool is_look;      /* changes nothing that is registered or subscribed, and goes before all others, every second time */
        bool is_glance;    /* a look that others need not be over for */
        bool is_trial;     /* changes nothing: what is none runs in the middle of it */
        uint64_t round;    /* among equals: each uid has one operation in a round */
} Operation;

typedef struct Operations {
        sd_event *event; /* borrowed, as the next: set before the first operation */
        Closer *closer;  /* goes while main waits */
        ChangeHandler handlers[_CHANGE_KIND_MAX];
        Operation *waiting;  /* in the order in which they came */
        Operation *running;  /* NULL while none runs, or one of no client; not the trial that is suspended */
        uint64_t rounds[2];  /* of the one that ran last, of the stream socket and of the control socket */
        size_t n_planned;    /* fds for tasks, at least, of all events that the trial that runs has looked at */
        bool is_running;
        bool is_serving;     /* others, at a checkpoint of what runs */
        bool is_in_step;     /* as is_serving, but in the middle of what others must not come between */
        nsec_t at_once_until; /* while others are served: looks of the stream socket wait from then on; 0: none came yet */
        bool has_looked;     /* the request that ran last only looked: changes have the next turn */
        bool is_final;       /* what runs has begun something that cannot be undone */
        bool is_pinned;      /* the trial that runs is not to be suspended */
        bool is_trying;      /* what runs is a change, and looks whether it will be refused: nothing stays open */
        nsec_t served_at;    /* CLOCK_MONOTONIC: when others last were, or what runs began */
        nsec_t resumed;      /* when what runs began, or went on behind another one */
        nsec_t worked;       /* of the trial that runs, until then */
        bool is_overdue;     /* it has worked for TRIAL_NSEC, and others wait to try something: it is cancelled */
        bool has_failed;     /* others, while what runs served them: its own error is not what ends perfd */
        bool is_stopping;    /* perfd ends: no request is begun any more */
        /* True: requests of this uid wait until then, CLOCK_MONOTONIC, for what they made others do. NULL: none ever does */
        bool (*postpones)(void *userdata, uid_t uid, nsec_t now, nsec_t *ret_until);
        void *postponer;
        bool are_postponed;  /* all that wait, until the timer says so, or another one comes */
        sd_event_source *timer;
        nsec_t served;       /* CPU time of main for others in the middle of what runs */
        Notes notes;         /* of what runs */
        bool is_due[_CHANGE_KIND_MAX];
        sd_event_source *sources[_CHANGE_KIND_MAX]; /* off while their change is due or runs; NULL: none */
} Operations;

typedef enum OperationKind {
        OPERATION_GLANCE, /* a look that may be answered in the middle of another operation, by what is known */
        OPERATION_LOOK,
        OPERATION_CHANGE,
        OPERATION_TRIAL,
} OperationKind;

/* The request of this connection, whose handler runs, waits for its turn. Refused: too many do, or there is no memory. */
int operations_add(Operations *o, Connection *c, OperationKind kind, Explanation *e);
/* It is the turn of this connection's request. */
bool operations_has_turn(const Operations *o, const Connection *c);
/* The request of a connection that is gone. */
void operations_drop(Operations *o, uint64_t connection_id);
/* Whose request runs. False: none does. */
bool operations_uid(const Operations *o, uint64_t *ret);
/* What runs changes nothing, whoever asks for it: a plan, or whether a configuration is valid; or a change that is tried first. */
bool operations_is_trial(const Operations *o);
/* From here on, or no longer: the change that runs only tries what it opens. It is not suspended for that. Its notes are forgotten. */
void operations_set_trying(Operations *o, bool on);
/*
 * TargetRef what runs is for, if that is a client that may not see all that perfd can: one of the stream socket, but root. NULL: all
 * others. Refused as connection_credentials().
 */
int operations_client(const Operations *o, Credentials *own, const Credentials **ret, Explanation *e);
/*
 * From here on, or no longer: the trial that runs looks at what is registered over its checkpoints, so that nothing may change.
 * For what is short.
 */
void operations_set_pinned(Operations *o, bool on);
/* The trial that ran was cancelled because it took too long, and somebody else waited for it. */
bool operations_is_overdue(const Operations *o);
/* What runs cannot be undone from here on: it is cancelled no more. */
void operations_set_final(Operations *o);
/*
 * What runs waits for another thread, and others are served meanwhile; at most until `usec` have passed. As checkpoint(), but
 * REFUSED_CANCELLED also of what is final.
 */
int operations_wait(Operations *o, uint64_t usec, Explanation *e);
/*
 * What runs waits for another thread in the middle of a step, and goes on with it in any case. Those who only look are served
 * meanwhile, and are told what was known before; all others wait, also those who need not at a checkpoint. Negative: fatal.
 */
bool operations_may_serve(const Operations *o);
int operations_serve(Operations *o);
/* The same where it may be, if what runs has had main for itself for a while. */
int operations_serve_sometimes(Operations *o);
/*
 * In the middle of an operation a look is answered at once, and of clients of the stream socket as many as its turn has room for:
 * one of them may have sent several, and one of root's is not to wait for all.
 */
bool operations_may_look(Operations *o, const Connection *c);
/* This is an answer in the middle of an operation: other threads are not asked anything. */
bool operations_is_between(const Operations *o);

/* Between two iterations of the loop: one of those that wait, if any does. Negative: fatal. */
int operations_run(Operations *o);
/* operations_run() has something to do. */
bool operations_are_waiting(const Operations *o);
void operations_set_handler(Operations *o, ChangeKind kind, int (*make)(void *userdata), void *userdata);
/* A change is to be made as soon as nothing runs. */
void operations_set_due(Operations *o, ChangeKind kind);
/* The same each time that there is something to read on an fd. */
int operations_listen(Operations *o, ChangeKind kind, int fd);
void operations_unlisten(Operations *o, ChangeKind kind);
void operations_deinit(Operations *o);
