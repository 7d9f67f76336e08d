/*
 * What main asks the dispatcher and waits for, but not for ever. Whoever is the last to have something to do with it frees it:
 * main when it has the answer, or the dispatcher when it answers and main has left.
 */
#pragma once

#include "daemon/dispatcher/command.h"

typedef enum AskState {
        ASK_AWAITED,
        ASK_ANSWERED, /* main frees it */
        ASK_LEFT,     /* the dispatcher does */
} AskState;

/* What main waits for, as long as it has patience. */
struct DispatcherAsk {
        sem_t done;
        DispatcherReport report;
        _Atomic(unsigned) state; /* AskState; acquired and released by who changes it */
};

/* Of the mail, which gets both. NULL: no memory. */
DispatcherAsk *dispatcher_ask_new(DispatcherCommand *mail);
void dispatcher_ask_free(DispatcherAsk *ask); /* main, behind `done` */
/* Main, which waits no longer. False: it was answered just now. Gone in both cases. */
bool dispatcher_ask_leave(DispatcherAsk *ask);
/* The dispatcher. False: main has left. */
bool dispatcher_ask_answer(DispatcherAsk *ask);
