/* systemd says by JOURNAL_STREAM which device and inode its journal's stderr has (systemd.exec(5)). */
#include "daemon/base/log.h"

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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool to_journal;

static void find_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat s;

        to_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &s) == 0 &&
                     s.st_dev == device && s.st_ino == inode;
}

void log_print(int priority, const char *format, ...) {
        char line[LINE_SIZE];
        va_list ap;

        pthread_once(&once, find_journal);
        va_start(ap, format);
        (void)vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        printable_make(line, sizeof(line));
        if (to_journal)
                (void)sd_journal_print(priority, "%s", line); /* there is nobody to tell that telling failed */
        else
                fprintf(stderr, "perfd: %s\n", line);
}

void log_print_lines(int priority, const char *what, const char *text) {
        for (size_t n; *text; text += n + (text[n] == '\n')) {
                n = strcspn(text, "\n");
                log_print(priority, "%s: %.*s", what, (int)n, text);
        }
}
