/*
 * Records in memory until their turn comes. What perf writes are rounds of what each CPU's ring had, in order, so there are few ascending
 * runs: a merge sort that finds them takes hardly more than a look at each record, and is stable.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/stored.h"

bool record_is_state(uint32_t type) {
        switch (type) {
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
        case PERF_RECORD_COMM:
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
        case PERF_RECORD_NAMESPACES:
        case PERF_RECORD_KSYMBOL:
        case PERF_RECORD_BPF_EVENT:
        case PERF_RECORD_CGROUP:
        case PERF_RECORD_TEXT_POKE:
                return true;
        }
        return false;
}

int memory_init_entries(Memory *m, size_t n) {
        *m = (Memory){ .is_in_order = true };
        m->entries = reallocarray(NULL, n + 1, sizeof(*m->entries));
        m->rest = reallocarray(NULL, n + 1, sizeof(*m->rest));
        m->scratch = reallocarray(NULL, n + 1, sizeof(*m->scratch));
        if (m->entries && m->rest && m->scratch)
                return 0;
        memory_deinit(m);
        return -ENOMEM;
}

int memory_init(Memory *m, size_t size) {
        const size_t bytes = size / 2 & ~(size_t)7; /* of the smallest records the entries take the other half, and as many again */
        const size_t most = bytes / sizeof(Stored);

        if (memory_init_entries(m, most) != 0)
                return -ENOMEM;
        m->size = bytes;
        m->bytes = malloc(bytes);
        if (m->bytes)
                return 0;
        memory_deinit(m);
        return -ENOMEM;
}

void memory_deinit(Memory *m) {
        free(m->bytes);
        free(m->entries);
        free(m->rest);
        free(m->scratch);
        *m = (Memory){ .n = 0 };
}

static Stored *stored_at(const Memory *m, const Entry *e) {
        return (Stored *)(void *)(m->bytes + e->at);
}

void memory_note(Memory *m, uint64_t time, uint64_t at, bool is_sorted) {
        const Entry e = { .time = time, .at = at };

        if (!is_sorted) {
                m->rest[m->n_rest++] = e;
                return;
        }
        m->is_in_order = m->is_in_order && (m->n_sorted == m->sorted_at || m->entries[m->n_sorted - 1].time <= e.time);
        m->entries[m->n_sorted++] = e;
}

/* Entries of what was given make room for others. */
static void drop_given(Memory *m) {
        if (m->sorted_at > 0) {
                memmove(m->entries, m->entries + m->sorted_at, (m->n_sorted - m->sorted_at) * sizeof(*m->entries));
                m->n_sorted -= m->sorted_at;
                m->sorted_at = 0;
        }
        if (m->rest_at > 0) {
                memmove(m->rest, m->rest + m->rest_at, (m->n_rest - m->rest_at) * sizeof(*m->rest));
                m->n_rest -= m->rest_at;
                m->rest_at = 0;
        }
}

void memory_add(Memory *m, const Stored *head, const void *bytes) {
        const size_t at = m->n, end = at + sizeof(*head) + head->size;

        memcpy(m->bytes + at, head, sizeof(*head));
        if (head->size > 0)
                memcpy(m->bytes + at + sizeof(*head), bytes, head->size);
        m->n = at + stored_size(head);
        memset(m->bytes + end, 0, m->n - end);
        memory_note(m, head->time, at, head->is_sorted);
}

void memory_compact(Memory *m) {
        size_t to = 0;

        m->sorted_at = m->n_sorted = m->rest_at = m->n_rest = m->n_given = 0;
        m->is_in_order = true;
        for (size_t from = 0; from < m->n;) {
                const Stored *s = (const Stored *)(const void *)(m->bytes + from);
                const size_t size = stored_size(s);
                const Stored *moved;

                if (!s->was_given) {
                        memmove(m->bytes + to, m->bytes + from, size);
                        moved = (const Stored *)(const void *)(m->bytes + to);
                        memory_note(m, moved->time, to, moved->is_sorted);
                        to += size;
                }
                from += size;
        }
        m->n = to;
}

void memory_clear(Memory *m) {
        m->n = m->n_given = m->sorted_at = m->n_sorted = m->rest_at = m->n_rest = 0;
        m->is_in_order = true;
}

/* ---- sorting --------------------------------------------------------------------------------------------------------------- */

/* The end of the ascending run that begins there. */
static size_t run_end(const Entry *e, size_t at, size_t n) {
        do
                at++;
        while (at < n && e[at - 1].time <= e[at].time);
        return at;
}

static void merge(const Entry *from, size_t a, size_t middle, size_t end, Entry *to) {
        size_t b = middle, at = a;

        while (a < middle && b < end)
                to[at++] = from[b].time < from[a].time ? from[b++] : from[a++];
        memcpy(to + at, from + a, (middle - a) * sizeof(*to));
        memcpy(to + at + (middle - a), from + b, (end - b) * sizeof(*to));
}

/* Merges each two neighbours of the ascending runs. False: there is one. */
static bool merge_pass(const Entry *from, Entry *to, size_t n) {
        size_t at = 0, n_runs = 0;

        while (at < n) {
                const size_t middle = run_end(from, at, n), end = middle < n ? run_end(from, middle, n) : n;

                merge(from, at, middle, end, to);
                at = end;
                n_runs++;
        }
        return n_runs > 1;
}

void memory_sort(Memory *m) {
        Entry *from = m->entries, *to = m->scratch;
        bool goes_on = !m->is_in_order;

        drop_given(m);
        while (goes_on) {
                Entry *other = from;

                goes_on = merge_pass(from, to, m->n_sorted);
                from = to;
                to = other;
        }
        m->entries = from;
        m->scratch = to;
        m->is_in_order = true;
}

/* ---- giving ---------------------------------------------------------------------------------------------------------------- */

Stored *memory_first_sorted(Memory *m) {
        if (!m->is_in_order)
                memory_sort(m);
        return m->sorted_at < m->n_sorted ? stored_at(m, &m->entries[m->sorted_at]) : NULL;
}

Stored *memory_first_rest(const Memory *m) {
        return m->rest_at < m->n_rest ? stored_at(m, &m->rest[m->rest_at]) : NULL;
}

static void give(Memory *m, Stored *s) {
        s->was_given = 1;
        m->n_given += stored_size(s);
}

void memory_give_sorted(Memory *m) {
        give(m, stored_at(m, &m->entries[m->sorted_at++]));
}

void memory_give_rest(Memory *m) {
        give(m, stored_at(m, &m->rest[m->rest_at++]));
}
