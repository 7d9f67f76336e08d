/* Distance is that of Levenshtein; what is longer than any name of an event is near nothing. */
#include "daemon/kernel/near.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 96

static size_t distance(const char *a, const char *b) {
        size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];

        if (n > LONGEST || m > LONGEST)
                return SIZE_MAX;
        for (size_t k = 0; k <= m; k++)
                row[k] = k;
        for (size_t i = 1; i <= n; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t k = 1; k <= m; k++) {
                        size_t change = diagonal + (a[i - 1] != b[k - 1]);
                        size_t least = row[k] < row[k - 1] ? row[k] : row[k - 1];

                        diagonal = row[k];
                        row[k] = least + 1 < change ? least + 1 : change;
                }
        }
        return row[m];
}

void near_text(const char *wanted, char *const *names, size_t n, char ret_text[static NEAR_TEXT_SIZE]) {
        const char *best[3] = { NULL };
        size_t best_distance[3], limit = 1 + strlen(wanted) / 3, used;

        for (size_t i = 0; i < n; i++) {
                size_t d = distance(wanted, names[i]);

                if (d > limit)
                        continue;
                for (size_t k = 0; k < 3; k++)
                        if (!best[k] || d < best_distance[k]) {
                                memmove(best + k + 1, best + k, (2 - k) * sizeof(*best));
                                memmove(best_distance + k + 1, best_distance + k, (2 - k) * sizeof(*best_distance));
                                best[k] = names[i];
                                best_distance[k] = d;
                                break;
                        }
        }
        ret_text[0] = '\0';
        if (!best[0])
                return;
        used = (size_t)snprintf(ret_text, NEAR_TEXT_SIZE, ": did you mean %s", best[0]);
        for (size_t k = 1; k < 3 && best[k] && used < NEAR_TEXT_SIZE; k++)
                used += (size_t)snprintf(ret_text + used, NEAR_TEXT_SIZE - used, "%s%s",
                                         k == 2 || !best[k + 1] ? " or " : ", ", best[k]);
        if (used + 1 < NEAR_TEXT_SIZE)
                strcpy(ret_text + used, "?");
}
