/* For report: tables for people and for programs. One thread. */
#pragma once

#include "client/perfctl/print/json.h"
#include "client/perfctl/report/shown.h"

/*
 * For people a line that says what the table is of, and the table. Else these lines, and one table of all, with tabs, each row behind the
 * name of its event; what is no row begins with "# ". Calls stand below their row. Files are called by their names, or by their paths.
 */
typedef struct ReportForm {
        bool is_human, has_paths;
} ReportForm;

void report_print_text(const Shown *s, Output *o, const ReportForm *form);
/* One object. */
void report_print_json(const Shown *s, Output *o);
