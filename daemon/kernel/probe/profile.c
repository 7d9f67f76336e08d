/*
 * The kernel's counts of dynamic events. A profile's line has no group, and two perfds on a host may well use the same
 * event name; but the kernel walks one list for both files, so that their lines come in the same order.
 */
#include "daemon/kernel/probe/names.h"

#include <string.h>

/* The last word of text[0, *n), which is cut off; its length, 0 if there is none. */
static size_t take_last_word(const char *text, size_t *n, const char **ret) {
        size_t end = *n, from;

        while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t'))
                end--;
        for (from = end; from > 0 && text[from - 1] != ' ' && text[from - 1] != '\t';)
                from--;
        *ret = text + from;
        *n = from;
        return end - from;
}

static bool take_last_number(const char *text, size_t *n, uint64_t *ret) {
        const char *word;
        size_t n_word = take_last_word(text, n, &word);
        uint64_t value = 0;

        if (n_word == 0 || n_word > 20)
                return false;
        for (size_t i = 0; i < n_word; i++) {
                if (word[i] < '0' || word[i] > '9')
                        return false;
                value = value * 10 + (uint64_t)(word[i] - '0');
        }
        *ret = value;
        return true;
}

/* How many lines have that name; *ret_rank: how many of them come before the one of the group, or that many. */
static size_t count_definitions(const char *events, const char *group, const char *name, size_t *ret_rank) {
        size_t n = 0, n_group = strlen(group), n_name = strlen(name), rank = SIZE_MAX;

        for (const char *line = events; *line;) {
                size_t length = strcspn(line, "\n");
                ProbeLine l;

                if (probe_line_parse(line, length, &l) && l.n_name == n_name && memcmp(l.name, name, n_name) == 0) {
                        if (rank == SIZE_MAX && l.n_group == n_group && memcmp(l.group, group, n_group) == 0)
                                rank = n;
                        n++;
                }
                line += length + (line[length] == '\n');
        }
        *ret_rank = rank;
        return n;
}

bool probe_profile_find(const char *events, const char *profile, bool is_kernel, const char *group, const char *name,
                        uint64_t *ret_hits, uint64_t *ret_missed) {
        uint64_t hits = 0, missed = 0;
        size_t rank, n_expected = count_definitions(events, group, name, &rank), n = 0;

        for (const char *line = profile; *line;) {
                size_t length = strcspn(line, "\n"), rest = length;
                uint64_t line_hits, line_missed = 0;
                const char *word;

                /* "  NAME HITS MISSED", "  FILE NAME HITS"; a file's name may have spaces, so from behind */
                if ((!is_kernel || take_last_number(line, &rest, &line_missed)) &&
                    take_last_number(line, &rest, &line_hits) && take_last_word(line, &rest, &word) == strlen(name) &&
                    memcmp(word, name, strlen(name)) == 0) {
                        if (n == rank) {
                                hits = line_hits;
                                missed = line_missed;
                        }
                        n++;
                }
                line += length + (line[length] == '\n');
        }
        if (n != n_expected || rank >= n)
                return false;
        *ret_hits = hits;
        *ret_missed = missed;
        return true;
}
