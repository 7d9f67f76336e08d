/* For thread bodies and request handlers, which say a thing once: to the journal under systemd, else to stderr. */
#pragma once

#include <stdint.h>
#include <syslog.h>

#include "daemon/base/clock.h"

/*
 * One line, whoever wrote what is in it: what does not print, line breaks too, is escaped (printable.h). priority as in
 * syslog(3); any thread.
 */
void log_print(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * From here on, what this thread prints was caused by a client of that uid, of whose lines no more than LOG_LINES_MAX are printed
 * in LOG_WINDOW; how many were not is said behind that. LOG_OF_NOBODY: it is perfd's own again, and so it is of
 * root. Gives back who it was before.
 */
#define LOG_OF_NOBODY UINT64_MAX
#define LOG_LINES_MAX 100
#define LOG_WINDOW (10 * NSEC_PER_SEC)
uint64_t log_charge(uint64_t uid);
/* A text of several lines that perfd itself made, as one entry for each, "WHAT: LINE". */
void log_print_lines(int priority, const char *what, const char *text);
