#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>

DispatcherAsk *dispatcher_ask_new(DispatcherCommand *command) {
        DispatcherAsk *ask = calloc(1, sizeof(*ask));

        if (!ask)
                return NULL;
        sem_init(&ask->done, 0, 0);
        atomic_init(&ask->state, ASK_AWAITED);
        command->ask = ask;
        command->report = &ask->report;
        command->done = &ask->done;
        return ask;
}

void dispatcher_ask_free(DispatcherAsk *ask) {
        dispatcher_report_deinit(&ask->report);
        sem_destroy(&ask->done);
        free(ask);
}

bool dispatcher_ask_leave(DispatcherAsk *ask) {
        if (atomic_exchange_explicit(&ask->state, ASK_LEFT, memory_order_acq_rel) != ASK_ANSWERED)
                return true;
        while (sem_wait(&ask->done) < 0) /* restarted after a signal: the dispatcher is about to post it */
                assert(errno == EINTR);
        dispatcher_ask_free(ask);
        return false;
}

bool dispatcher_ask_answer(DispatcherAsk *ask) {
        if (atomic_exchange_explicit(&ask->state, ASK_ANSWERED, memory_order_acq_rel) == ASK_LEFT) {
                dispatcher_ask_free(ask);
                return false;
        }
        sem_post(&ask->done);
        return true;
}

void dispatcher_command_free(DispatcherCommand *command) {
        if (!command)
                return;
        subscriber_free(command->subscriber);
        task_scan_free(command->scan);
        if (command->ask)
                (void)dispatcher_ask_answer(command->ask); /* when the dispatcher ends: main no longer waits for the answer */
        free(command->bytes);
        free(command);
}

void dispatcher_report_deinit(DispatcherReport *r) {
        free(r->subscribers);
        free(r->late);
        *r = (DispatcherReport){ .n_subscribers = 0 };
}
