/* For thread bodies and request handlers, which say a thing once: to the journal under systemd, else to stderr. */
#pragma once

#include <syslog.h>

/*
 * One line, whoever wrote what is in it: what does not print, line breaks too, is escaped (printable.h). priority as in
 * syslog(3); any thread.
 */
void log_print(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text of several lines that perfd itself made, as one entry for each, "WHAT: LINE". */
void log_print_lines(int priority, const char *what, const char *text);
