#include "daemon/dispatcher/ask.h"

#include <errno.h>
#include <stdlib.h>

DispatcherAsk *dispatcher_ask_new(DispatcherCommand *mail) {
        DispatcherAsk *ask = calloc(1, sizeof(*ask));

        if (!ask)
                return NULL;
        sem_init(&ask->done, 0, 0);
        atomic_init(&ask->state, ASK_AWAITED);
        mail->ask = ask;
        mail->report = &ask->report;
        mail->done = &ask->done;
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
        while (sem_wait(&ask->done) < 0) /* it is being posted */
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
