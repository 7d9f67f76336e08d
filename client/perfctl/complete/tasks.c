#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/complete/complete.h"

static void offer_numbers(Perfctl *p, const char *word, const char *before, const char *path, bool with_threads) {
        DIR *d = opendir(path);
        struct dirent *entry;
        char threads[sizeof("/proc//task") + sizeof(entry->d_name)];

        while (d && (entry = readdir(d))) {
                if (!isdigit((unsigned char)entry->d_name[0]))
                        continue;
                if (!with_threads) {
                        complete_offer(p, word, before, entry->d_name);
                        continue;
                }
                (void)snprintf(threads, sizeof(threads), "/proc/%s/task", entry->d_name);
                offer_numbers(p, word, before, threads, false);
        }
        if (d)
                (void)closedir(d);
}

void complete_tasks(Perfctl *p, const char *word, Words words) {
        const char *comma = strrchr(word, ',');
        char *before = must_have(strndup(word, comma ? (size_t)(comma + 1 - word) : 0));

        offer_numbers(p, word, before, "/proc", words == WORDS_THREADS);
        free(before);
}
