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
#include <systemd/sd-journal.h>

#include "daemon/base/printable.h"

#define LINE_SIZE 1024
#define WINDOWS 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool to_journal;

static void find_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat s;

        to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &s) == 0 &&
                     s.st_dev == device && s.st_ino == inode;
}

static void put(int priority, const char *line) {
        if (to_journal)
                (void)sd_journal_print(priority, "%s", line); /* there is nobody to tell that telling failed */
        else
                fprintf(stderr, "perfd: %s\n", line);
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
static _Thread_local uint64_t charged = LOG_OF_NOBODY;

uint64_t log_charge(uint64_t uid) {
        uint64_t before = charged;

        charged = uid == 0 ? LOG_OF_NOBODY : uid; /* who may stop perfd may also fill its log, and is its auditor */
        return before;
}

static void window_end(Window *w) {
        char line[128];

        (void)snprintf(line, sizeof(line), "uid %llu has caused %u more lines, which are left out", (unsigned long long)w->uid,
                       w->n_left_out);
        if (w->n_left_out > 0)
                put(LOG_NOTICE, line);
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
        if (charged != LOG_OF_NOBODY) {
                w = window_of(charged, now);
                may = w->n < LOG_LINES_MAX;
                w->n += may;
                w->n_left_out += !may;
                if (w->n_left_out == 1 && !may)
                        put(LOG_NOTICE, "a client causes too many lines: those of its uid are left out for some seconds, and counted");
        }
        pthread_mutex_unlock(&lock);
        errno = error;
        return may;
}

void log_print(int priority, const char *format, ...) {
        char line[LINE_SIZE];
        va_list ap;

        pthread_once(&once, find_journal);
        if (!may_print())
                return;
        va_start(ap, format);
        (void)vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        printable_make(line, sizeof(line));
        put(priority, line);
}

void log_print_lines(int priority, const char *what, const char *text) {
        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                log_print(priority, "%s: %.*s", what, (int)n, text);
        }
}
