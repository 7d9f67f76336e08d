/*
 * Runs are merged by a heap of their first records. There are at most as many as buffers fit in the memory that was allowed: if there come
 * more, the smaller half of them becomes one, so that large ones are seldom written again.
 */
#include "client/recording/damage.h"
#include "client/recording/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

static bool is_before(const Run *a, const Run *b) {
        return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

static void swap(Run *a, Run *b) {
        const Run other = *a;

        *a = *b;
        *b = other;
}

static void sift_down(Run *list, size_t n, size_t i) {
        for (;;) {
                size_t first = i;

                for (size_t child = 2 * i + 1; child < n && child <= 2 * i + 2; child++)
                        if (is_before(&list[child], &list[first]))
                                first = child;
                if (first == i)
                        return;
                swap(&list[i], &list[first]);
                i = first;
        }
}

static void heapify(Run *list, size_t n) {
        for (size_t i = n / 2; i > 0; i--)
                sift_down(list, n, i - 1);
}

void runs_drop_buffers(Runs *runs) {
        for (size_t i = 0; i < runs->n; i++)
                run_drop_buffer(&runs->list[i]);
}

void runs_deinit(Runs *runs) {
        runs_drop_buffers(runs);
        free(runs->list);
        temporary_close(&runs->file);
        *runs = RUNS_NULL;
}

int runs_add(perfd_recording *r, Runs *runs, uint64_t from) {
        Run run = { .begin = from, .at = from };
        const Stored *first;
        int code = temporary_flush(r, &runs->file);

        run.end = runs->file.n;
        if (code != 0 || run.at == run.end)
                return code;
        if (runs->n == runs->room) {
                Run *larger = reallocarray(runs->list, 2 * runs->room + 16, sizeof(*larger));

                if (!larger)
                        return recording_fail(r, -ENOMEM, "no memory");
                runs->list = larger;
                runs->room = 2 * runs->room + 16;
        }
        code = run_first(r, &runs->file, &run, &first);
        run_drop_buffer(&run);
        if (code != 0)
                return code;
        runs->list[runs->n++] = run;
        heapify(runs->list, runs->n);
        return 0;
}

static int step(perfd_recording *r, const Temporary *file, Run *list, size_t *n) {
        int code = run_step(r, file, &list[0]);

        if (code != 0)
                return code;
        if (list[0].at == list[0].end) {
                list[0] = list[--*n];
                list[*n] = (Run){ .at = 0 }; /* whose buffer has moved */
        }
        sift_down(list, *n, 0);
        return 0;
}

int runs_step(perfd_recording *r, Runs *runs) {
        return step(r, &runs->file, runs->list, &runs->n);
}

static int by_size(const void *a, const void *b) {
        const Run *one = a, *two = b;
        const uint64_t n = one->end - one->at, m = two->end - two->at;

        return n < m ? -1 : n > m;
}

/* What they had is there twice until it is given back, where the file system can do that; elsewhere it goes with the file. */
static void give_back(const Temporary *t, uint64_t at, uint64_t end) {
        (void)fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)(end - at));
}

int runs_merge(perfd_recording *r, Runs *runs) {
        const size_t all = runs->n / 2;
        const uint64_t from = runs->file.n;
        size_t left = all;
        int code = 0;

        runs_drop_buffers(runs);
        qsort(runs->list, runs->n, sizeof(*runs->list), by_size);
        heapify(runs->list, all);
        while (code == 0 && left > 0) {
                const Stored *first;
                const Run before = runs->list[0];
                const size_t n = left;

                code = run_first(r, &runs->file, &runs->list[0], &first);
                if (code == 0)
                        code = temporary_add(r, &runs->file, first, first + 1);
                if (code == 0)
                        code = step(r, &runs->file, runs->list, &left);
                if (code == 0 && left < n)
                        give_back(&runs->file, before.begin, before.end);
        }
        if (code != 0)
                return code; /* nothing is read of them any more */
        for (size_t i = all; i < runs->n; i++)
                runs->list[i - all] = runs->list[i];
        runs->n -= all;
        return runs_add(r, runs, from);
}
