/* A name is kept once, for as long as the table lives: whoever adds frames up compares pointers. */
#include "client/perfctl/names/kept-names.h"

#include <stdlib.h>
#include <string.h>

void kept_names_init(KeptNames *k) {
        *k = (KeptNames){ .room = 1024 };
        k->list = must_have(calloc(k->room, sizeof(*k->list)));
}

void kept_names_deinit(KeptNames *k) {
        for (size_t i = 0; i < k->room; i++)
                free(k->list[i].name);
        free(k->list);
        *k = (KeptNames){ .room = 0 };
}

/* FNV-1a, a word at a time: whoever is traced chooses its names, and can make this table slow, but not wrong. */
static uint64_t hash_text(uint64_t hash, perfd_text text) {
        for (size_t i = 0; i < text.length; i++)
                hash = (hash ^ (uint8_t)text.bytes[i]) * UINT64_C(0x100000001b3);
        return (hash ^ text.length) * UINT64_C(0x100000001b3);
}

static bool text_is(perfd_text a, perfd_text b) {
        return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static bool name_is(const FrameName *n, const perfd_frame *frame) {
        return text_is(n->symbol, frame->symbol) && text_is(n->dso, frame->dso) && text_is(n->build_id, frame->build_id) &&
               n->note == frame->note && n->line == frame->line && text_is(n->file, frame->file);
}

static perfd_text copy_text(char **to, perfd_text text) {
        perfd_text copy = { .bytes = *to, .length = text.length };

        if (text.length > 0)
                memcpy(*to, text.bytes, text.length);
        (*to)[text.length] = '\0';
        *to += text.length + 1;
        return copy;
}

static FrameName *name_new(const perfd_frame *frame) {
        const size_t n = frame->symbol.length + frame->dso.length + frame->build_id.length + frame->file.length + 4;
        FrameName *name = must_have(malloc(sizeof(*name) + n));
        char *to = (char *)(name + 1);

        name->symbol = copy_text(&to, frame->symbol);
        name->dso = copy_text(&to, frame->dso);
        name->build_id = copy_text(&to, frame->build_id);
        name->file = copy_text(&to, frame->file);
        name->line = frame->line;
        name->note = frame->note;
        return name;
}

static void grow(KeptNames *k) {
        const size_t room = 2 * k->room;
        NameSlot *names = must_have(calloc(room, sizeof(*names)));

        for (size_t i = 0; i < k->room; i++) {
                const NameSlot *slot = &k->list[i];

                if (!slot->name)
                        continue;
                for (size_t at = slot->hash;; at++)
                        if (!names[at & (room - 1)].name) {
                                names[at & (room - 1)] = *slot;
                                break;
                        }
        }
        free(k->list);
        k->list = names;
        k->room = room;
}

static const FrameName *find_or_keep(KeptNames *k, const perfd_frame *frame) {
        const uint64_t code = hash_text(hash_text(hash_text(UINT64_C(0xcbf29ce484222325), frame->symbol), frame->dso), frame->build_id);
        const uint64_t hash = hash_text(code ^ frame->line, frame->file);
        size_t at = hash;

        if (2 * (k->n + 1) > k->room)
                grow(k);
        for (NameSlot *slot; (slot = &k->list[at & (k->room - 1)])->name; at++)
                if (slot->hash == hash && name_is(slot->name, frame))
                        return slot->name;
        k->list[at & (k->room - 1)] = (NameSlot){ .hash = hash, .name = name_new(frame) };
        k->n++;
        return k->list[at & (k->room - 1)].name;
}

/*
 * The symbolizer gives the texts of a function from one place as long as it has them, so that place says which name it may be: to compare
 * them costs less than to hash them. Another text may stand there later, which is then another name.
 */
const FrameName *kept_names_add(KeptNames *k, const perfd_frame *frame) {
        const uint64_t place = (uintptr_t)frame->symbol.bytes ^ (uint64_t)(uintptr_t)frame->dso.bytes << 20 ^ frame->line;
        const FrameName **recent = &k->recent[place * UINT64_C(0x9e3779b97f4a7c15) >> 52];

        if (!*recent || !name_is(*recent, frame))
                *recent = find_or_keep(k, frame);
        return *recent;
}

_Static_assert(NAMES_RECENT == (size_t)1 << (64 - 52), "kept_names_add() takes as many bits of its hash");
