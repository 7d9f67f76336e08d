/* What a ledger is of. */
#include <stdlib.h>

#include "daemon/supervisor/ledger/ledger.h"

static int compare_ids(const void *a, const void *b) {
        const uint32_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

void ledger_sort_ids(uint32_t *ids, size_t n) {
        qsort(ids, n, sizeof(*ids), compare_ids);
}

bool ledger_has(const LedgerScope *scope, const Event *event) {
        size_t first = 0, last = scope->n_ids;

        while (!scope->is_all && first < last) {
                size_t middle = first + (last - first) / 2;

                if (scope->ids[middle] == event->id)
                        return true;
                if (scope->ids[middle] < event->id)
                        first = middle + 1;
                else
                        last = middle;
        }
        return scope->is_all;
}
