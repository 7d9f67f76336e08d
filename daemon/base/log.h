/*
 * The log of thread bodies and request handlers: the journal under systemd, else stderr. Entries of the journal have fields in
 * addition to the text; stderr gets only the text. Library code does not log.
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

/* The place in the code that logs an entry. */
typedef struct LogPlace {
        const char *file, *function;
        int line;
} LogPlace;

#define LOG_PLACE (&(const LogPlace){ __FILE__, __func__, __LINE__ })

/* The field PERFD_NAME=value of an entry. `name` is [A-Z0-9_]; NULL values are skipped. LOG_FIELDS({ "EVENT", name }, ...) */
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
 * Logs one line. Unprintable characters, including line breaks, are escaped (printable.h), in fields too. priority: as in syslog(3).
 * fields: NULL, or at most LOG_FIELDS_MAX fields, terminated by one without a name. Any thread.
 */
void log_put(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
#define log_print(priority, message, ...) log_put(LOG_PLACE, priority, message, NULL, __VA_ARGS__)
#define log_print_with(priority, message, fields, ...) log_put(LOG_PLACE, priority, message, fields, __VA_ARGS__)
/* Logs each line of a text of perfd itself as an entry "WHAT: LINE" with these fields. */
void log_put_lines(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *what,
                   const char *text);
#define log_print_lines(priority, message, fields, what, text) log_put_lines(LOG_PLACE, priority, message, fields, what, text)

/* The client that caused an entry, and its connection, or 0. */
typedef struct LogCause {
        uint64_t uid; /* LOG_OF_NOBODY: perfd itself has */
        pid_t pid;
        uint64_t connection;
} LogCause;

#define LOG_OF_NOBODY UINT64_MAX
#define LOG_CAUSE_NOBODY ((LogCause){ .uid = LOG_OF_NOBODY })
/*
 * Attributes later entries of this thread to this client. At most LOG_LINES_MAX lines of each uid except root are logged in
 * LOG_WINDOW; a line after that says how many were omitted. Returns the previous cause.
 */
#define LOG_LINES_MAX 100
#define LOG_WINDOW (10 * NSEC_PER_SEC)
LogCause log_charge(LogCause cause);

/* The program whose lines these are, in front of those that go to stderr; static, before the first line. Without: perfd. */
void log_set_program(const char *name);
/* Whether entries go to the journal, where text that is only written to stderr has no priority. Any thread. */
bool log_is_journal(void);
