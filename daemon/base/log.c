/* systemd says by JOURNAL_STREAM which device and inode its journal's stderr has (systemd.exec(5)). */
#include "daemon/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION /* an entry has the place that said it, which is not here */
#include <systemd/sd-journal.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/printable.h"

#define LINE_SIZE 1024
#define VALUE_SIZE 512
#define ENTRY_SIZE 8192
#define PARTS_OF_LINE 10 /* its text, kind, priority, place and cause */
#define WINDOWS 64

static const char *const ids[] = {
#define MESSAGE(code, id) [MESSAGE_##code] = "MESSAGE_ID=" id,
#include "daemon/base/log-message.def"
#undef MESSAGE
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool to_journal;
static const char *program = "perfd";

void log_set_program(const char *name) {
        program = name;
}

static void find_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat s;

        to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &s) == 0 &&
                     s.st_dev == device && s.st_ino == inode;
}

bool log_is_journal(void) {
        pthread_once(&once, find_journal);
        return to_journal;
}

const char *log_number(char text[LOG_NUMBER_SIZE], uint64_t n) {
        (void)snprintf(text, LOG_NUMBER_SIZE, "%llu", (unsigned long long)n);
        return text;
}

/* ---- entries of the journal -------------------------------------------------------------------------------------- */

typedef struct Entry {
        struct iovec parts[PARTS_OF_LINE + LOG_FIELDS_MAX];
        int n;
        char text[ENTRY_SIZE]; /* "NAME=value" of each, with a zero behind it */
        size_t used;
} Entry;

static void entry_end_part(Entry *e) {
        const size_t length = strlen(e->text + e->used);

        e->parts[e->n++] = (struct iovec){ .iov_base = e->text + e->used, .iov_len = length };
        e->used += length + 1;
}

/*
 * A value is escaped for itself, so that whoever wrote it, it ends where it ends; one that there is no room for is cut, and a field
 * for which there is none is left out.
 */
static void entry_add(Entry *e, const char *prefix, const char *name, const char *value) {
        const size_t length = strlen(prefix) + strlen(name) + 1;

        if (!value || (size_t)e->n == ARRAY_SIZE(e->parts) || e->used + length + VALUE_SIZE > sizeof(e->text))
                return;
        (void)snprintf(e->text + e->used, length + 1, "%s%s=", prefix, name);
        (void)snprintf(e->text + e->used + length, VALUE_SIZE, "%s", value);
        printable_make(e->text + e->used + length, VALUE_SIZE);
        entry_end_part(e);
}

static void entry_add_number(Entry *e, const char *prefix, const char *name, uint64_t n) {
        entry_add(e, prefix, name, LOG_NUMBER(n));
}

/* As the tree names it, wherever the compiler ran. */
static const char *path_in_tree(const char *path) {
        while (strncmp(path, "../", 3) == 0)
                path += 3;
        return path;
}

static void send_entry(const LogPlace *place, int priority, LogMessage message, const LogCause *cause, const LogField *fields,
                       const char *line) {
        Entry e = { .n = 0 };

        (void)snprintf(e.text, LINE_SIZE + sizeof("MESSAGE="), "MESSAGE=%s", line);
        entry_end_part(&e);
        e.parts[e.n++] = (struct iovec){ .iov_base = (char *)ids[message], .iov_len = strlen(ids[message]) };
        entry_add_number(&e, "", "PRIORITY", (uint64_t)priority);
        entry_add(&e, "CODE_", "FILE", path_in_tree(place->file));
        entry_add_number(&e, "CODE_", "LINE", (uint64_t)place->line);
        entry_add(&e, "CODE_", "FUNC", place->function);
        if (cause->uid != LOG_OF_NOBODY)
                entry_add_number(&e, "PERFD_", "UID", cause->uid);
        if (cause->pid > 0)
                entry_add_number(&e, "PERFD_", "PID", (uint64_t)cause->pid);
        if (cause->connection > 0)
                entry_add_number(&e, "PERFD_", "CONNECTION", cause->connection);
        for (size_t i = 0; fields && fields[i].name; i++)
                entry_add(&e, "PERFD_", fields[i].name, fields[i].value);
        (void)sd_journal_sendv(e.parts, e.n); /* there is nobody to tell that telling failed */
}

static void put(const LogPlace *place, int priority, LogMessage message, const LogCause *cause, const LogField *fields,
                const char *line) {
        if (to_journal)
                send_entry(place, priority, message, cause, fields, line);
        else
                fprintf(stderr, "%s: %s\n", program, line);
}

/* ---- whose lines ------------------------------------------------------------------------------------------------- */

/* The lines of one uid since `begin`. With more uids at a time than there is room for, the one that began first is forgotten. */
typedef struct Window {
        uint64_t uid;
        nsec_t begin; /* 0: free */
        unsigned n, n_left_out;
} Window;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the windows */
static Window windows[WINDOWS];
static _Thread_local LogCause charged = { .uid = LOG_OF_NOBODY };

LogCause log_charge(LogCause cause) {
        LogCause before = charged;

        charged = cause;
        return before;
}

static void put_left_out(const LogPlace *place, uint64_t uid, unsigned n, const char *line) {
        const LogCause cause = { .uid = uid };

        put(place, LOG_NOTICE, MESSAGE_LINES_LEFT_OUT, &cause, LOG_FIELDS({ "LINES", n > 0 ? LOG_NUMBER(n) : NULL }), line);
}

static void window_end(Window *w) {
        char line[128];

        (void)snprintf(line, sizeof(line), "uid %llu has caused %u more lines, which are omitted", (unsigned long long)w->uid,
                       w->n_left_out);
        if (w->n_left_out > 0)
                put_left_out(LOG_PLACE, w->uid, w->n_left_out, line);
        *w = (Window){ .begin = 0 };
}

/* No line comes at a time of its own: what was left out is said in front of the next one, whoever's it is. */
static void end_windows(nsec_t now) {
        for (size_t i = 0; i < WINDOWS; i++)
                if (windows[i].begin != 0 && now - windows[i].begin >= LOG_WINDOW)
                        window_end(&windows[i]);
}

static Window *window_of(uint64_t uid, nsec_t now) {
        Window *oldest = &windows[0];

        for (size_t i = 0; i < WINDOWS; i++) {
                if (windows[i].begin != 0 && windows[i].uid == uid)
                        return &windows[i];
                if (windows[i].begin < oldest->begin)
                        oldest = &windows[i];
        }
        window_end(oldest);
        *oldest = (Window){ .uid = uid, .begin = now };
        return oldest;
}

static bool may_print(void) {
        int error = errno; /* for %m */
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        bool may = true;
        Window *w;

        pthread_mutex_lock(&lock);
        end_windows(now);
        if (charged.uid != LOG_OF_NOBODY && charged.uid != 0) { /* who may stop perfd may also fill its log, and is its auditor */
                w = window_of(charged.uid, now);
                may = w->n < LOG_LINES_MAX;
                w->n += may;
                w->n_left_out += !may;
                if (w->n_left_out == 1 && !may)
                        put_left_out(LOG_PLACE, w->uid, 0,
                                     "a client causes too many lines: those of its uid are counted but omitted for some seconds");
        }
        pthread_mutex_unlock(&lock);
        errno = error;
        return may;
}

void log_put(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *format, ...) {
        char line[LINE_SIZE];
        va_list ap;

        pthread_once(&once, find_journal);
        if (!may_print())
                return;
        va_start(ap, format);
        (void)vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        printable_make(line, sizeof(line));
        put(place, priority, message, &charged, fields, line);
}

void log_put_lines(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *what,
                   const char *text) {
        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                log_put(place, priority, message, fields, "%s: %.*s", what, (int)n, text);
        }
}
