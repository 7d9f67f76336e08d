/* Edits of one letter, and neighbours that changed places: what fingers do. One letter, and a quarter of the word, may be wrong. */
#include "client/perfctl/base/near.h"

#include <string.h>

#define NEAR_MAX 63 /* longer words are not compared */

static size_t smaller(size_t a, size_t b) {
        return a < b ? a : b;
}

/* Optimal string alignment: three rows of the usual table. */
static size_t distance(const char *a, const char *b) {
        size_t rows[3][NEAR_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2], *spare;
        size_t n_a = strlen(a), n_b = strlen(b);

        for (size_t k = 0; k <= n_b; k++)
                above[k] = k;
        for (size_t i = 1; i <= n_a; i++) {
                row[0] = i;
                for (size_t k = 1; k <= n_b; k++) {
                        row[k] = smaller(smaller(above[k], row[k - 1]) + 1, above[k - 1] + (a[i - 1] != b[k - 1]));
                        if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                                row[k] = smaller(row[k], before[k - 2] + 1);
                }
                spare = before;
                before = above;
                above = row;
                row = spare;
        }
        return above[n_b];
}

void near_add(Near *n, const char *candidate) {
        size_t length = strlen(n->word), d;

        if (length > NEAR_MAX || strlen(candidate) > NEAR_MAX)
                return;
        d = distance(n->word, candidate);
        if (d <= 1 + length / 4 && d < length && (!n->best || d < n->distance)) {
                n->best = candidate;
                n->distance = d;
        }
}
