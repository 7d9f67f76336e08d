/* For readers, dispatcher and ledger: the reasons of loss.def as an enum and as names. */
#pragma once

typedef enum Loss {
#define LOSS(code, name, help) LOSS_##code,
#include "daemon/model/loss.def"
#undef LOSS
        _LOSS_MAX,
} Loss;

const char *loss_name(Loss loss);
