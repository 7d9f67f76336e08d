/* For readers, dispatcher and ledger: the reasons of loss.def as an enum and as names. */
#pragma once

typedef enum Loss {
#define LOSS(code, name, help) LOSS_##code,
#include "daemon/model/loss.def"
#undef LOSS
        _LOSS_MAX,
} Loss;

/* An event's counters have the reasons before it: only the dispatcher counts which samples are late. */
#define _LOSS_EVENT_MAX LOSS_LATE
_Static_assert(LOSS_LATE == _LOSS_MAX - 1,
               "add the row of loss.def above LATE: what readers and main count comes first, LATE is the dispatcher's alone");

/* The stable name of the protocol and of the ledger: "kernel", "batch_pool". Static. */
const char *loss_name(Loss loss);
