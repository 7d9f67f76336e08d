/*
 * A request of main to the dispatcher for which main waits, but not without a limit. The last thread to use it frees it: main
 * when it has the answer, or the dispatcher when it answers after main has left.
 */
#pragma once

#include "daemon/dispatcher/command.h"

typedef enum AskState {
        ASK_AWAITED,
        ASK_ANSWERED, /* main frees it */
        ASK_LEFT,     /* the dispatcher does */
} AskState;

/* What main waits for. */
struct DispatcherAsk {
        sem_t done;
        DispatcherReport report;
        _Atomic(unsigned) state; /* AskState; changed with acquire and release order */
};

/* The ask of a command, which gets its `done` and `report`. NULL: no memory. */
DispatcherAsk *dispatcher_ask_new(DispatcherCommand *command);
void dispatcher_ask_free(DispatcherAsk *ask); /* main, after `done` was posted */
/* Main, which does not wait any longer. False: it was answered just now. It must not be used afterwards in either case. */
bool dispatcher_ask_leave(DispatcherAsk *ask);
/* The dispatcher. False: main has left. */
bool dispatcher_ask_answer(DispatcherAsk *ask);
