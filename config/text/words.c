/*
 * Messages about a configuration quote the configuration, which may come from anyone who may validate. The quote is
 * decoded strictly, because a message is also a protobuf string, and those must be UTF-8.
 */
#include "config/text/words.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"

#define WORD_MAX 96 /* bytes: any GROUP:NAME of the kernel, and long keys; more is near nothing */

/* Behind "://" who somebody is to the other host can stand, with a password: a message must not have it. NULL: nothing of it. */
static const char *user_info_end(const char *text, const char *s) {
        return s - text >= 3 && memcmp(s - 3, "://", 3) == 0 ? strrchr(s, '@') : NULL;
}

char *quote_text(char buffer[static QUOTE_SIZE], const char *text) {
        const char *s = text, *end;
        size_t to = 0;

        buffer[to++] = '\'';
        while (*s) {
                size_t n = printable_length(s);

                if (to + 10 > QUOTE_SIZE) { /* the longest piece (4, "***@"), "...", the quote and the zero */
                        to += (size_t)sprintf(buffer + to, "...");
                        break;
                }
                end = user_info_end(text, s);
                if (end) {
                        to += (size_t)sprintf(buffer + to, "***");
                        s = end;
                        n = 1;
                }
                if (n > 0)
                        memcpy(buffer + to, s, n);
                to += n > 0 ? n : (size_t)sprintf(buffer + to, "\\x%02x", (unsigned char)*s);
                s += n > 0 ? n : 1;
        }
        buffer[to++] = '\'';
        buffer[to] = '\0';
        return buffer;
}

static unsigned least(unsigned a, unsigned b) {
        return a < b ? a : b;
}

/*
 * Letters to add, drop, change, or swap with their neighbour, to make b of a; both at most WORD_MAX long. More than `most` is
 * only known to be more: no row is less than both of those before it.
 */
static unsigned word_distance(const char *a, size_t n_a, const char *b, size_t n_b, unsigned most, size_t *n_compared) {
        unsigned before_least = 0, row_least = 0;
        unsigned rows[3][WORD_MAX + 1] = { 0 }, *before = rows[0], *last = rows[1], *row = rows[2];

        for (size_t j = 0; j <= n_b; j++)
                row[j] = (unsigned)j;
        for (size_t i = 1; i <= n_a; i++) {
                unsigned *oldest = before;

                before = last;
                last = row;
                row = oldest;
                row[0] = (unsigned)i;
                if (before_least > most && row_least > most)
                        return row_least;
                before_least = row_least;
                row_least = row[0];
                *n_compared += n_b;
                for (size_t j = 1; j <= n_b; j++) {
                        row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                row[j] = least(row[j], before[j - 2] + 1);
                        row_least = least(row_least, row[j]);
                }
        }
        return row[n_b];
}

void nearest_add(Nearest *n, const char *found, const char *candidate) {
        size_t n_found = strlen(found), n_candidate = strlen(candidate);
        unsigned distance, most;

        if (n_found > WORD_MAX || n_candidate > WORD_MAX || n->n_compared > NEAREST_COMPARES || (n->word && n->distance == 0))
                return;
        most = n_candidate > 3 ? (unsigned)n_candidate / 3 : 1;
        if (n->word && n->distance <= most)
                most = n->distance - 1;
        if ((n_found > n_candidate ? n_found - n_candidate : n_candidate - n_found) > most)
                return; /* so many to add or to drop */
        distance = word_distance(found, n_found, candidate, n_candidate, most, &n->n_compared);
        if (distance > most || distance >= n_found)
                return;
        n->word = candidate;
        n->distance = distance;
}

char *nearest_hint(const Nearest *n, char buffer[static NEAREST_HINT_SIZE]) {
        buffer[0] = '\0';
        if (n->word)
                (void)snprintf(buffer, NEAREST_HINT_SIZE, "; did you mean '%s'?", n->word); /* at most WORD_MAX */
        return buffer;
}
