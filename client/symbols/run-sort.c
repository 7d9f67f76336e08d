/*
 * A merge sort that begins with the ascending runs that there are, of which two neighbours at a time become one. What comes from one of them
 * without a break is copied at once.
 */
#include "client/symbols/run-sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Sorting {
        size_t size;
        int (*compare)(const void *, const void *);
        size_t *ends; /* of runs: how many elements are before them and in them */
        size_t n_runs;
} Sorting;

static size_t count_runs(const char *list, size_t n, const Sorting *s) {
        size_t n_runs = n > 0;

        for (size_t i = 1; i < n; i++)
                n_runs += s->compare(list + (i - 1) * s->size, list + i * s->size) > 0;
        return n_runs;
}

static void note_ends(const char *list, size_t n, Sorting *s) {
        s->n_runs = 0;
        for (size_t i = 1; i < n; i++)
                if (s->compare(list + (i - 1) * s->size, list + i * s->size) > 0)
                        s->ends[s->n_runs++] = i;
        s->ends[s->n_runs++] = n;
}

static char *copy(char *to, const char *from, const char *end) {
        memcpy(to, from, (size_t)(end - from));
        return to + (end - from);
}

/* a up to a_end, which is where b begins */
static void merge(const Sorting *s, const char *a, const char *a_end, const char *b_end, char *to) {
        const char *b = a_end;

        while (a < a_end && b < b_end) {
                const char *from = a;

                while (a < a_end && s->compare(a, b) <= 0)
                        a += s->size;
                to = copy(to, from, a);
                from = b;
                while (a < a_end && b < b_end && s->compare(a, b) > 0)
                        b += s->size;
                to = copy(to, from, b);
        }
        copy(copy(to, a, a_end), b, b_end);
}

/* Half as many runs are left. */
static void merge_neighbours(Sorting *s, const char *from, char *to) {
        size_t begin = 0, n = 0;

        for (size_t i = 0; i < s->n_runs; i += 2) {
                const size_t middle = s->ends[i], end = i + 1 < s->n_runs ? s->ends[i + 1] : middle;

                merge(s, from + begin * s->size, from + middle * s->size, from + end * s->size, to + begin * s->size);
                s->ends[n++] = begin = end;
        }
        s->n_runs = n;
}

int run_sort(void *list, size_t n, size_t size, int (*compare)(const void *, const void *)) {
        Sorting s = { .size = size, .compare = compare };
        char *from = list, *to, *room;

        s.n_runs = count_runs(list, n, &s);
        if (s.n_runs <= 1)
                return 0;
        s.ends = reallocarray(NULL, s.n_runs, sizeof(*s.ends));
        to = room = reallocarray(NULL, n, size);
        if (!s.ends || !room) {
                free(s.ends);
                free(room);
                return -ENOMEM;
        }
        note_ends(list, n, &s);
        while (s.n_runs > 1) {
                char *other = from;

                merge_neighbours(&s, from, to);
                from = to;
                to = other;
        }
        if (from == room)
                memcpy(list, room, n * size);
        free(s.ends);
        free(room);
        return 0;
}
