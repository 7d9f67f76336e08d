/*
 * For the two printers of items: what is the same in each line of an event, as ready bytes, made once when its first item comes.
 * What is left for each item are its values. Without a plan, for an event whose names are longer than those of any tracepoint, or
 * whose arrays are, a line is made from the event's description.
 */
#pragma once

#include <string.h>

#include "client/perfctl/names/frame-names.h"
#include "client/perfctl/base/output.h"
#include "client/perfd.h"

#define PLAN_PIECE ((size_t)16) /* ready bytes are copied in pieces of this size: behind them there is room for one more */

#define ELEMENT_ROOM (3 + DECIMAL_ROOM) /* of a number of a list, with what is around it */
#define TEXT_ROOM ((size_t)64)          /* longer texts are written by themselves */
#define RENDER_ROOM ((size_t)512)       /* the same of what the library renders */
#define LINE_AROUND ((size_t)512)       /* what a line has besides its fields and the name of its event */

/* How a value is written, of a sample that shows all its values at once. */
typedef enum ValueForm {
        VALUE_RENDERED, /* as the library renders it */
        VALUE_UNSIGNED,
        VALUE_SIGNED,
        VALUE_HEX,
        VALUE_TEXT,
} ValueForm;

typedef struct PlannedField {
        const char *key; /* what stands before its value: `,"id":` or " id=", with what parts it from the one before */
        uint32_t n_key;
        uint32_t index;  /* of the field */
        perfd_kind kind;
        bool is_array;
        bool is_quoted;  /* of text: a value with spaces is put into quotes */
        uint8_t form;    /* ValueForm */
        uint32_t count;  /* of an array */
        uint32_t place;  /* of the first, among the numbers or the texts of a sample */
        uint64_t mask;   /* VALUE_HEX: its bits */
} PlannedField;

typedef struct ItemPlan {
        uint32_t id;
        const perfd_event *event; /* NULL: it was forgotten */
        const char *name;         /* of the event: `,"event":"NAME","kernel_event":"EVENT","cpu":`, or NAME as text; NULL: there is no plan */
        size_t n_name;
        PlannedField *fields, *names; /* fields; of JSON, those of them whose values have names */
        size_t n_fields, n_names;
        size_t room;     /* for a line of it, but for texts that are longer than TEXT_ROOM */
        char *bytes;
} ItemPlan;

typedef enum ItemForm {
        ITEM_FORM_TEXT,         /* of lines that are not padded and have no colours */
        ITEM_FORM_TEXT_KERNELS, /* the same, with fields whose names begin with "__" */
        ITEM_FORM_JSON,
} ItemForm;

typedef struct ItemPlans {
        ItemForm form;
        bool has_frames;      /* JSON: callchains are lists of frames, and not of addresses */
        bool has_lines;       /* JSON: these have source lines */
        const NamedFrame *frames; /* JSON: of the item that is to be printed, as frame_names_of() has them; NULL: it has no names */
        size_t n_frames;  /* of them: more than its callchain, where its stack was unwound, or fewer, where only some were asked for */
        bool has_no_calls;    /* JSON: callchains are left out */
        uint64_t frames_number; /* of them, as of frame_names_number(); 0: they have none */
        struct ChainTexts *chains; /* what was written of frames that have a number; NULL: nothing yet */
        ItemPlan **list;      /* by a hash of the id */
        size_t n, room;
        const ItemPlan *last; /* found */
        struct KnownPieces *pieces; /* of lines of all events; there as soon as there is a plan */
} ItemPlans;

const ItemPlan *item_plans_look(ItemPlans *p, const perfd_event *event);
/* The event's description is not valid any more, or will be another one. */
void item_plans_forget(ItemPlans *p, uint32_t id);
void item_plans_deinit(ItemPlans *p);

/* That of an event; it is made if there is none. NULL: none can be. */
static inline const ItemPlan *item_plans_find(ItemPlans *p, const perfd_event *event) {
        const ItemPlan *plan = p->last && p->last->event == event ? p->last : item_plans_look(p, event);

        return plan->name ? plan : NULL;
}

/* Copies ready bytes to where there is room for them and a piece; gives their end. */
static inline char *plan_put(char *to, const char *bytes, size_t n) {
        for (size_t i = 0; i < n; i += PLAN_PIECE)
                memcpy(to + i, bytes + i, PLAN_PIECE);
        return to + n;
}
