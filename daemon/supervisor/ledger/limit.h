/* For the ledger: what is left of one for a client that may not see all. Main thread only. */
#pragma once

#include "proto/perfd.pb-c.h"

/* Only what was lost, as far as that is known during the stream; its rows still add up. */
void ledger_limit(Perfd__V1__Ledger *ledger);
