/*
 * For streams: what each event's items consist of. Made from the EventDescriptor messages of the stream, found by the
 * event's id for every item.
 */
#pragma once

#include "client/item/layout.h"
#include "client/perfd.h"
#include "client/wire/arena.h"
#include "proto/perfd.pb-c.h"

/* Where the values of a field lie in the numbers, or in the texts, of an item. */
typedef struct ValuePlace {
        size_t first, count;
} ValuePlace;

#define DESCRIPTOR_NAMES 16 /* a power of two */
#define DESCRIPTORS_RECENT 64

/* A name by which a field was found: an address, where another text may be by now. */
typedef struct FoundName {
        const char *name;
        size_t index;
} FoundName;

typedef struct Descriptor {
        perfd_event event;
        Arena arena;
        Perfd__V1__EventDescriptor *message; /* event points into it */
        ValuePlace *places;                  /* by field; of an event with dynamic arrays only up to the first one */
        size_t n_numbers, n_texts;           /* of every item; without dynamic arrays exactly */
        struct PrintFormat *print; /* of the arena; NULL: nothing that the fields' own description does not say */
        bool dynamic;
        bool is_external; /* clients emit its samples, and may not say of whom they are */
        ItemLayout layouts[LAYOUTS];          /* those that are known; of an event that has some */
        FoundName found[DESCRIPTOR_NAMES];    /* by their addresses */
} Descriptor;

typedef struct Descriptors {
        Descriptor **list; /* by id */
        size_t n;
        Descriptor *recent[DESCRIPTORS_RECENT]; /* found, by the last bits of the id */
        const ItemLayout *layout; /* of the item before, or NULL: items of one event often follow each other */
} Descriptors;

#define DESCRIPTORS_NULL ((Descriptors){ .list = NULL })

/* Takes the message in any case. -ENOMEM, PERFD_E_PROTOCOL if it says what cannot be. Replaces one of the same id. */
int descriptors_add(Descriptors *d, Perfd__V1__EventDescriptor *message, const perfd_event **ret_event);
void descriptors_remove(Descriptors *d, uint32_t id);
/* NULL: none came, or it was removed. */
Descriptor *descriptors_look(Descriptors *d, uint32_t id);
static inline Descriptor *descriptors_find(Descriptors *d, uint32_t id) {
        Descriptor *recent = d->recent[id % DESCRIPTORS_RECENT];

        return recent && recent->event.id == id ? recent : descriptors_look(d, id);
}
void descriptors_deinit(Descriptors *d);

static inline bool field_is_text(const perfd_field *f) {
        return f->kind == PERFD_TEXT || f->kind == PERFD_BYTES;
}

/* The public image of a list of fields, which points into the messages. -ENOMEM, PERFD_E_PROTOCOL. */
int fields_new(Arena *arena, Perfd__V1__FieldDescriptor *const *messages, size_t n, const perfd_field **ret_fields);
