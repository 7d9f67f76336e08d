/* For `ledger` and for the end of `watch`: a ledger as JSON lines or as tables, and what is to be said of it. */
#pragma once

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/table.h"

/* A line for each event and CPU, each ring, each subscriber, each probe. */
void ledger_print_json(Output *o, const perfd_result *ledger);
/* width: that lines are to fit into; 0: any. */
void ledger_print_tables(Output *o, bool human, size_t width, const perfd_result *ledger);
/* A cell: "kernel_ring 12, late 3", or "-" for none; and the same as an object. */
void ledger_put_counts(Table *t, const perfd_count *counts, size_t n);
void ledger_put_counts_json(Json *j, const char *name, const perfd_count *counts, size_t n);
/* Some of these losses are the kernel's own: list points to the line below, which is long. */
bool ledger_has_unwritten(const perfd_count *counts, size_t n);
/* A line, if some of these losses are none that anybody could have avoided; else NULL. */
const char *ledger_explain_unwritten(const perfd_count *counts, size_t n);
/* Says on stderr what does not balance. An exit status. */
int ledger_judge(const Perfctl *p, const perfd_result *ledger);
