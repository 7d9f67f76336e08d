/*
 * For the supervisor: what the log says of losses, for each event at most once a second while it loses, and once more when it is
 * removed or perfd ends. Main is not woken while nothing is lost. Main thread only.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/loss.h"

typedef struct Ledger Ledger;
typedef struct Registration Registration;

typedef struct Losses {
        LossBell bell;
        sd_event_source *timer; /* on for a second behind a look, and no longer if nothing was lost in it */
        uint64_t n_late;        /* of the dispatcher, at the last look */
        uint64_t removed[_LOSS_EVENT_MAX]; /* of events that are no more */
} Losses;

#define LOSSES_NULL { .bell = LOSS_BELL_NULL }

/* Before any other thread; and when all have ended. Negative. */
int ledger_start_losses(Ledger *s);
void ledger_free_losses(Ledger *s);
/* Events are about to be removed, or, with none, perfd ends: what of their losses was not said yet. They are disabled. Negative. */
int ledger_say_last_losses(Ledger *s, Registration *const *list, size_t n);
/* What an event has lost, behind its last cut, when it is about to go: the losses of all events, since the start, have it. */
void ledger_add_removed_losses(Ledger *s, const Registration *g);
/* Something was lost (CHANGE_LOSSES); userdata is the Ledger. Negative: fatal. */
int ledger_on_losses(void *userdata);
