/* For `ledger` and for the end of `watch`: a ledger as JSON lines or as tables, and what is to be said of it. */
#pragma once

#include "client/perfctl/perfctl.h"

/* A line for each event and CPU, each ring, each subscriber, each probe. */
void ledger_print_json(Output *o, const perfd_result *ledger);
/* width: that lines are to fit into; 0: any. */
void ledger_print_tables(Output *o, bool human, size_t width, const perfd_result *ledger);
/* Says on stderr what does not balance. An exit status. */
int ledger_judge(const Perfctl *p, const perfd_result *ledger);
