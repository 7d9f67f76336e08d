/*
 * What perf writes are rounds of what each CPU's ring had, in order, so there are few ascending runs. They are found once, and merged with their
 * neighbours where they are: of two only what lies between the first of the second and the last of the first moves. So rounds that hardly reach
 * into each other cost hardly more than a look. A run waits on a stack until those behind it are about as long, so that each record moves for
 * the logarithm of the number of runs at most, however they lie.
 */
#include "client/recording/run-merge.h"

#define RUNS_MAX 96 /* on the stack each is longer than the sum of the two behind it: no memory has room for more */

typedef struct Ascent {
        size_t begin, n;
} Ascent;

static size_t run_length(const Entry *list, size_t n) {
        size_t i = 1;

        while (i < n && list[i - 1].time <= list[i].time)
                i++;
        return i;
}

/* How many of them, sorted, come before that time, or with `or_same` have it. */
static size_t count_before(const Entry *list, size_t n, uint64_t time, bool or_same) {
        size_t low = 0, high = n;

        while (low < high) {
                const size_t middle = low + (high - low) / 2;

                if (list[middle].time < time || (or_same && list[middle].time == time))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Two that follow each other. Which comes first is as good as thrown: no branch asks it. */
static void merge(Entry *list, size_t n_first, size_t n_second, Entry *scratch) {
        const Entry *first = scratch, *second = list + n_first, *first_end, *second_end;
        const size_t skipped = count_before(list, n_first, second->time, true);
        Entry *to = list + skipped;

        n_first -= skipped;
        if (n_first == 0)
                return;
        first_end = first + n_first;
        second_end = second + count_before(second, n_second, (second - 1)->time, false);
        memcpy(scratch, to, n_first * sizeof(*to));
        while (first < first_end && second < second_end) {
                const bool is_second = second->time < first->time;

                *to++ = *(is_second ? second : first);
                second += is_second;
                first += !is_second;
        }
        memcpy(to, first, (size_t)(first_end - first) * sizeof(*to)); /* of the second ones the rest is where it belongs */
}

/* The run there and the one behind it. */
static void merge_at(Entry *list, Ascent *runs, size_t *n_runs, size_t at, Entry *scratch) {
        merge(list + runs[at].begin, runs[at].n, runs[at + 1].n, scratch);
        runs[at].n += runs[at + 1].n;
        for (size_t i = at + 1; i + 1 < *n_runs; i++)
                runs[i] = runs[i + 1];
        --*n_runs;
}

/* Whether the last of them but one has to be merged with a neighbour, so that lengths grow as fast as Fibonacci's numbers do from the end on. */
static bool is_uneven(const Ascent *runs, size_t n) {
        return (n > 1 && runs[n - 2].n <= runs[n - 1].n) || (n > 2 && runs[n - 3].n <= runs[n - 2].n + runs[n - 1].n) ||
               (n > 3 && runs[n - 4].n <= runs[n - 3].n + runs[n - 2].n);
}

/* Which of them is merged with the one behind it: the last two, or the two before the last. */
static size_t next_merge(const Ascent *runs, size_t n) {
        return n > 2 && runs[n - 3].n < runs[n - 1].n ? n - 3 : n - 2;
}

void entries_sort(Entry *list, size_t n, Entry *scratch) {
        Ascent runs[RUNS_MAX];
        size_t n_runs = 0;

        for (size_t at = 0, length; at < n; at += length) {
                length = run_length(list + at, n - at);
                runs[n_runs++] = (Ascent){ .begin = at, .n = length };
                while (is_uneven(runs, n_runs))
                        merge_at(list, runs, &n_runs, next_merge(runs, n_runs), scratch);
        }
        while (n_runs > 1)
                merge_at(list, runs, &n_runs, next_merge(runs, n_runs), scratch);
}
