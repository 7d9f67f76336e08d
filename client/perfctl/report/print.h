/* For report: tables for people and for programs. One thread. */
#pragma once

#include "client/perfctl/print/json.h"
#include "client/perfctl/report/shown.h"

/*
 * On a terminal a line that says what the table is of, and the table. Else one table of all, with tabs, each row behind the name of its
 * event. Calls stand below their row.
 */
void report_print_text(const Shown *s, Output *o, bool is_human);
/* One object. */
void report_print_json(const Shown *s, Output *o);

/* Nodes of what is at least as large as is asked for; they come first. */
size_t report_calls_shown(const Shown *s, const ShownTable *t, CallNodes nodes);
