/* For tests of batches: two events, what a daemon says of them, and items of theirs. */
#pragma once

#include "tests/unit/client-line.h"

#define FIXED 8 /* event: n, pair[2]; PLAYED_EVENT has a list of its own length, and texts */
#define TEXTS 9 /* n, text */

static uint64_t seed = 88172645463325252;

static inline uint64_t next_random(void) { /* xorshift64 */
        seed ^= seed << 13;
        seed ^= seed >> 7;
        return seed ^= seed << 17;
}

typedef struct OwnDescriptor {
        Perfd__V1__EventDescriptor message;
        Perfd__V1__FieldDescriptor fields[2], *list[2];
} OwnDescriptor;

static inline void descriptor_init(OwnDescriptor *d, uint32_t id) {
        perfd__v1__event_descriptor__init(&d->message);
        for (int i = 0; i < 2; i++) {
                perfd__v1__field_descriptor__init(&d->fields[i]);
                d->list[i] = &d->fields[i];
        }
        d->message.id = id;
        d->message.name = (char *)(id == FIXED ? "fixed" : "texts");
        d->message.fields = d->list;
        d->message.n_fields = 2;
        d->fields[0].name = (char *)"n";
        d->fields[0].count = 1;
        d->fields[1].name = (char *)(id == FIXED ? "pair" : "text");
        d->fields[1].count = id == FIXED ? 2 : 1;
        d->fields[1].kind = id == FIXED ? PERFD__V1__FIELD_KIND__FIELD_KIND_UNSIGNED : PERFD__V1__FIELD_KIND__FIELD_KIND_TEXT;
}

static inline void play_descriptors(int fd, uint64_t sequence) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        OwnDescriptor own[2];
        Perfd__V1__EventDescriptor *events[] = { &own[0].message, &own[1].message };

        descriptor_init(&own[0], FIXED);
        descriptor_init(&own[1], TEXTS);
        p.sequence = sequence;
        p.events = events;
        p.n_events = 2;
        play_packet(fd, &p);
}

static inline void item_init(Perfd__V1__Item *item, uint64_t numbers[3], ProtobufCBinaryData *text, uint32_t event) {
        static Perfd__V1__LostRecord lost;
        uint64_t r = next_random();

        if (event == PLAYED_EVENT) {
                play_item_init(item, r);
                return;
        }
        perfd__v1__item__init(item);
        item->time = r;
        item->event = event;
        item->cpu = (uint32_t)(r >> 8) % 3;
        item->pid = item->tid = (uint32_t)(r >> 16) % 3;
        if (event == 0) {
                perfd__v1__lost_record__init(&lost);
                lost.lost = 3;
                item->record_case = PERFD__V1__ITEM__RECORD_LOST;
                item->lost = &lost;
                return;
        }
        for (int i = 0; i < 3; i++)
                numbers[i] = next_random();
        item->numbers = numbers;
        item->n_numbers = event == FIXED ? 3 : 1;
        *text = play_text("abcdefgh", r >> 24 & 7);
        item->texts = text;
        item->n_texts = event == TEXTS;
}
