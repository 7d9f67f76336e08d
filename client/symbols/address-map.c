/* Records of several CPUs come out of order, so versions are told apart by their times, and not by when they came. */
#include "client/symbols/address-map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many begin at an address or before it. */
static size_t count_before(const AddressMap *m, uint64_t address) {
        size_t from = 0, to = m->n;

        while (from < to) {
                const size_t middle = from + (to - from) / 2;

                if (m->list[middle].start <= address)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

int address_map_add(AddressMap *m, const Mapping *mapping) {
        const size_t at = count_before(m, mapping->start);

        if (m->n == m->room) {
                const size_t room = m->room ? m->room * 2 : 8;
                Mapping *list = reallocarray(m->list, room, sizeof(Mapping));

                if (!list)
                        return -ENOMEM;
                m->list = list;
                m->room = room;
        }
        memmove(m->list + at + 1, m->list + at, (m->n - at) * sizeof(Mapping));
        m->list[at] = *mapping;
        m->n++;
        for (size_t i = at; i < m->n; i++) {
                const uint64_t before = i > 0 ? m->list[i - 1].end_so_far : 0;
                const uint64_t end = m->list[i].end > before ? m->list[i].end : before;

                if (i > at && m->list[i].end_so_far == end)
                        break;
                m->list[i].end_so_far = end;
        }
        return 0;
}

static bool is_later(const Mapping *a, const Mapping *b) {
        return !b || a->time > b->time || (a->time == b->time && a->order > b->order);
}

const Mapping *address_map_find(const AddressMap *m, uint64_t address, uint64_t time, uint64_t since, Validity *validity) {
        const Mapping *best = NULL;

        for (size_t i = count_before(m, address); i > 0 && m->list[i - 1].end_so_far > address; i--) {
                const Mapping *one = m->list + i - 1;

                if (one->end <= address || one->time < since)
                        continue;
                if (one->time > time)
                        validity->until = one->time < validity->until ? one->time : validity->until;
                else if (is_later(one, best))
                        best = one;
        }
        if (best && best->time > validity->from)
                validity->from = best->time;
        return best && best->dso ? best : NULL;
}

void address_map_deinit(AddressMap *m) {
        for (size_t i = 0; i < m->n; i++)
                free(m->list[i].name);
        free(m->list);
        *m = (AddressMap){ .list = NULL };
}
