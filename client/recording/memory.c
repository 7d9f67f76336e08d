/*
 * Records in memory until their turn comes, which are sorted by run-merge.c. Of what waits some are copies, and others stay where they are in a
 * block of the recording, until the block is needed for what follows.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/recording/memory.h"
#include "client/recording/run-merge.h"
#include "client/recording/stored.h"
#include "client/recording/surplus.h"

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
        *m = (Memory){ .is_in_order = true, .room = n };
        m->entries = reallocarray(NULL, n + 1, sizeof(*m->entries));
        m->rest = reallocarray(NULL, n + 1, sizeof(*m->rest));
        m->scratch = reallocarray(NULL, n + 1, 2 * sizeof(*m->scratch));
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

static bool is_in_place(const Entry *e) {
        return (e->at & IN_PLACE) != 0;
}

/* Of entries[n_sorted], which comes to the others. */
static void note_sorted(Memory *m) {
        m->is_in_order &= m->n_sorted == m->sorted_at || m->entries[m->n_sorted - 1].time <= m->entries[m->n_sorted].time;
        m->n_sorted++;
}

size_t memory_skim(perfd_recording *r, Memory *m, bool is_sorted) {
        Entry *to = is_sorted ? m->entries + m->n_sorted : m->rest + m->n_rest;
        const size_t n = recording_skim(r, to, m->room - (is_sorted ? m->n_sorted : m->n_rest));

        if (!is_sorted)
                m->n_rest += n;
        for (size_t i = 0; is_sorted && i < n; i++)
                note_sorted(m);
        return n;
}

void memory_note(Memory *m, uint64_t time, uint64_t at, bool is_sorted) {
        const Entry e = { .time = time, .at = at };

        if (!is_sorted) {
                m->rest[m->n_rest++] = e;
                return;
        }
        m->entries[m->n_sorted] = e;
        note_sorted(m);
}

static size_t drop(Entry *list, size_t at, size_t n) {
        if (at > 0)
                memmove(list, list + at, (n - at) * sizeof(*list));
        return n - at;
}

bool memory_drop_given(Memory *m) {
        const bool is_worth = m->sorted_at + m->rest_at >= m->room / 4;

        m->n_sorted = drop(m->entries, m->sorted_at, m->n_sorted);
        m->n_rest = drop(m->rest, m->rest_at, m->n_rest);
        m->sorted_at = m->rest_at = 0;
        return is_worth;
}

/* Behind all copies. */
static void put(Memory *m, const Stored *head, const void *bytes) {
        const size_t at = m->n, end = at + sizeof(*head) + head->size;

        memcpy(m->bytes + at, head, sizeof(*head));
        if (head->size > 0)
                memcpy(m->bytes + at + sizeof(*head), bytes, head->size);
        m->n = at + stored_size(head);
        memset(m->bytes + end, 0, m->n - end);
}

void memory_add(Memory *m, const Stored *head, const void *bytes) {
        const size_t at = m->n;

        put(m, head, bytes);
        memory_note(m, head->time, at, head->is_sorted);
}

static Entry *next_copy(Entry *list, size_t *at, size_t n) {
        while (*at < n && is_in_place(&list[*at]))
                ++*at;
        return *at < n ? &list[*at] : NULL;
}

/* Of entries[sorted_at, n_sorted) those that are copies, by where they are: `at` is their index. How many there are. */
static size_t list_copies(Memory *m) {
        size_t n = 0;

        for (size_t i = m->sorted_at; i < m->n_sorted; i++)
                if (!is_in_place(&m->entries[i]))
                        m->scratch[n++] = (Entry){ .time = m->entries[i].at, .at = i };
        entries_sort(m->scratch, n, m->scratch + m->room + 1);
        return n;
}

/* The rest is in the order of the recording, and so are its copies. */
void memory_compact(Memory *m) {
        const size_t n_sorted = list_copies(m);
        size_t sorted_at = 0, rest_at = m->rest_at, to = 0;

        for (;;) {
                Entry *sorted = sorted_at < n_sorted ? &m->entries[m->scratch[sorted_at].at] : NULL, *rest = next_copy(m->rest, &rest_at, m->n_rest);
                const bool is_sorted = sorted && (!rest || sorted->at < rest->at);
                Entry *e = is_sorted ? sorted : rest;
                size_t size;

                if (!e)
                        break;
                size = stored_size(stored_at(m, e));
                memmove(m->bytes + to, stored_at(m, e), size);
                e->at = to;
                to += size;
                sorted_at += is_sorted;
                rest_at += !is_sorted;
        }
        m->n = to;
        m->n_given = 0;
}

void memory_clear(Memory *m) {
        m->n = m->n_given = m->sorted_at = m->n_sorted = m->rest_at = m->n_rest = 0;
        m->is_in_order = true;
}

void memory_sort(Memory *m) {
        (void)memory_drop_given(m);
        if (!m->is_in_order)
                entries_sort(m->entries, m->n_sorted, m->scratch);
        m->is_in_order = true;
}

/* ---- places ---------------------------------------------------------------------------------------------------------------- */

static perfd_recorded read_place(const perfd_recording *r, const Entry *e) {
        const Source *s = &r->source;
        const uint64_t offset = e->at & ~IN_PLACE;
        Bytes b = { .at = s->held + (offset - s->held_at), .end = s->held + s->n_held, .swap = r->is_swapped };
        perfd_recorded record = { .type = bytes_u32(&b), .offset = offset };

        record.misc = bytes_u16(&b);
        record.size = bytes_u16(&b) - (size_t)PERF_DATA_RECORD_HEADER;
        record.bytes = b.at;
        if (record.type < PERF_DATA_HEADER_ATTR && record.type != PERF_RECORD_SAMPLE)
                recording_drop_surplus(r, &record);
        return record;
}

static Kept get_place(const perfd_recording *r, const Entry *e, bool is_sorted) {
        const perfd_recorded record = read_place(r, e);

        return (Kept){ .head = { .time = e->time, .offset = record.offset, .sequence = record.offset, .is_sorted = is_sorted,
                                 .type = record.type, .misc = record.misc, .size = (uint32_t)record.size }, .bytes = record.bytes };
}

Kept memory_get(const perfd_recording *r, const Memory *m, const Entry *e) {
        if (is_in_place(e))
                return get_place(r, e, e >= m->entries && e < m->entries + m->n_sorted);
        return (Kept){ .head = *stored_at(m, e), .bytes = stored_at(m, e) + 1 };
}

void memory_show(perfd_recording *r, const Memory *m, const Entry *e) {
        r->shown = is_in_place(e) ? read_place(r, e) : stored_shown(stored_at(m, e));
}

/* Bytes that copies of those in place would take. */
static size_t size_of_places(const perfd_recording *r, const Memory *m, const Entry *list, size_t at, size_t n) {
        size_t size = 0;

        for (; at < n; at++)
                if (is_in_place(&list[at])) {
                        const Kept kept = memory_get(r, m, &list[at]);

                        size += stored_size(&kept.head);
                }
        return size;
}

static void copy_places(const perfd_recording *r, Memory *m, Entry *list, size_t at, size_t n) {
        for (; at < n; at++)
                if (is_in_place(&list[at])) {
                        const Kept kept = memory_get(r, m, &list[at]);

                        list[at].at = m->n;
                        put(m, &kept.head, kept.bytes);
                }
}

bool memory_copy_places(perfd_recording *r, Memory *m) {
        const size_t size = size_of_places(r, m, m->entries, m->sorted_at, m->n_sorted) + size_of_places(r, m, m->rest, m->rest_at, m->n_rest);

        if (m->n_given >= m->n / 2 || size > m->size - m->n)
                memory_compact(m);
        if (size > m->size - m->n)
                return false;
        copy_places(r, m, m->entries, m->sorted_at, m->n_sorted);
        copy_places(r, m, m->rest, m->rest_at, m->n_rest);
        return true;
}

/* ---- giving ---------------------------------------------------------------------------------------------------------------- */

const Entry *memory_first_sorted(Memory *m) {
        if (!m->is_in_order)
                memory_sort(m);
        return m->sorted_at < m->n_sorted ? &m->entries[m->sorted_at] : NULL;
}

static void give(Memory *m, const Entry *e) {
        if (!is_in_place(e))
                m->n_given += stored_size(stored_at(m, e));
}

void memory_give_sorted(Memory *m) {
        give(m, &m->entries[m->sorted_at++]);
}

void memory_give_rest(Memory *m) {
        give(m, &m->rest[m->rest_at++]);
}
