/*
 * For thread bodies and request handlers, which say a thing once: to the journal under systemd, else to stderr. The journal's
 * entry has fields beside its text, which is all that stderr gets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <syslog.h>

#include "daemon/base/clock.h"

/* log-message.def, as an enum. */
typedef enum LogMessage {
#define MESSAGE(code, id) MESSAGE_##code,
#include "daemon/base/log-message.def"
#undef MESSAGE
        _LOG_MESSAGE_MAX,
} LogMessage;

/* Where a line comes from. */
typedef struct LogPlace {
        const char *file, *function;
        int line;
} LogPlace;

#define LOG_PLACE (&(const LogPlace){ __FILE__, __func__, __LINE__ })

/* PERFD_NAME=value, of the entry. `name` is [A-Z0-9_]; a value that is NULL is none. LOG_FIELDS({ "EVENT", name }, ...) */
typedef struct LogField {
        const char *name, *value;
} LogField;

#define LOG_FIELDS_MAX 16
#define LOG_FIELDS(...) ((const LogField[]){ __VA_ARGS__, { .name = NULL } })
/* A number as a value, for as long as the block lasts. */
#define LOG_NUMBER_SIZE 24
#define LOG_NUMBER(n) log_number((char[LOG_NUMBER_SIZE]){ "" }, n)
const char *log_number(char text[LOG_NUMBER_SIZE], uint64_t n);

/*
 * One line, whoever wrote what is in it: what does not print, line breaks too, is escaped (printable.h), in fields as well.
 * priority as in syslog(3); any thread. fields: NULL, or up to LOG_FIELDS_MAX and one without a name behind them.
 */
void log_put(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
#define log_print(priority, message, ...) log_put(LOG_PLACE, priority, message, NULL, __VA_ARGS__)
#define log_print_with(priority, message, fields, ...) log_put(LOG_PLACE, priority, message, fields, __VA_ARGS__)
/* A text of several lines that perfd itself made, as one entry for each, "WHAT: LINE", all with these fields. */
void log_put_lines(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *what,
                   const char *text);
#define log_print_lines(priority, message, fields, what, text) log_put_lines(LOG_PLACE, priority, message, fields, what, text)

/* Who has caused a line: a client, by one of its connections. Of no connection: 0. */
typedef struct LogCause {
        uint64_t uid; /* LOG_OF_NOBODY: perfd itself has */
        pid_t pid;
        uint64_t connection;
} LogCause;

#define LOG_OF_NOBODY UINT64_MAX
#define LOG_CAUSE_NOBODY ((LogCause){ .uid = LOG_OF_NOBODY })
/*
 * From here on, what this thread prints was caused by this client. Of the lines of one uid but root's, no more than LOG_LINES_MAX
 * are printed in LOG_WINDOW; how many were not is said behind that. Gives back who it was before.
 */
#define LOG_LINES_MAX 100
#define LOG_WINDOW (10 * NSEC_PER_SEC)
LogCause log_charge(LogCause cause);

/* Any thread: entries go to the journal, where what is only written to stderr would have no priority. */
bool log_is_journal(void);
