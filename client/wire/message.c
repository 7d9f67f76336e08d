/* Messages of rare items are read by tables: a switch for each would be a dozen pages that say the same. */
#include "client/wire/message.h"

static void member_set(uint8_t *to, const Member *m, const WireField *f) {
        switch (m->size) {
        case sizeof(bool):
                memcpy(to, &(bool){ f->number != 0 }, sizeof(bool));
                break;
        case sizeof(uint32_t):
                memcpy(to, &(uint32_t){ (uint32_t)f->number }, sizeof(uint32_t));
                break;
        case sizeof(uint64_t):
                memcpy(to, &f->number, sizeof(f->number));
                break;
        default:
                memcpy(to, &(perfd_text){ .bytes = (const char *)f->bytes, .length = f->length }, sizeof(perfd_text));
        }
}

int message_decode(const WireField *field, const Member *members, size_t n, void *to) {
        Wire w = wire_of(field->bytes, field->length);
        WireField f = { .key = 0 };

        for (size_t i = 0; i < n; i++)
                if (members[i].type == WIRE_BYTES)
                        member_set((uint8_t *)to + members[i].offset, &members[i],
                                   &(WireField){ .bytes = (const uint8_t *)"" });
        while (wire_next(&w, &f)) {
                uint32_t number = f.key >> 3;

                if (number <= n && members[number - 1].size > 0 && (f.key & 7) == members[number - 1].type)
                        member_set((uint8_t *)to + members[number - 1].offset, &members[number - 1], &f);
        }
        return w.malformed ? PERFD_E_PROTOCOL : 0;
}
