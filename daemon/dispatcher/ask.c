#include "daemon/dispatcher/ask.h"
#include "daemon/dispatcher/cycle.h"

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

void dispatcher_mail_free(DispatcherCommand *mail) {
        if (!mail)
                return;
        subscriber_free(mail->subscriber);
        task_scan_free(mail->scan);
        if (mail->ask)
                (void)dispatcher_ask_answer(mail->ask); /* at the end: main has left */
        free(mail->bytes);
        free(mail);
}

void dispatcher_report_deinit(DispatcherReport *r) {
        free(r->subscribers);
        free(r->late);
        *r = (DispatcherReport){ .n_subscribers = 0 };
}
