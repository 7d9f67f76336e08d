/* For readers, dispatcher and ledger: the reasons of loss.def as an enum and as names. */
#pragma once

typedef enum Loss {
#define LOSS(code, name, help) LOSS_##code,
#include "daemon/model/loss.def"
#undef LOSS
        _LOSS_MAX,
} Loss;

/* An event's counters have those before it: which samples come too late for streams is the dispatcher's to say. */
#define _LOSS_EVENT_MAX LOSS_LATE
_Static_assert(LOSS_LATE == _LOSS_MAX - 1,
               "add the row of loss.def above LATE: what readers and main count comes first, LATE is the dispatcher's alone");

const char *loss_name(Loss loss);
