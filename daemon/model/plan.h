/*
 * For readers: where each field of a tracepoint lies in its raw bytes and what it is, precompiled from the event's
 * format and immutable. Made by kernel/tracefs/format.c on the supervisor thread, shared by reference count, read everywhere.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

/* The same values as perfd.v1.FieldKind. */
typedef enum FieldKind {
        FIELD_UNSIGNED,
        FIELD_SIGNED,
        FIELD_POINTER,
        FIELD_BOOL,
        FIELD_TEXT,  /* char array or string, up to its terminating zero */
        FIELD_BYTES, /* what is neither number nor text */
        _FIELD_KIND_MAX,
} FieldKind;

typedef enum FieldPlace {
        PLACE_FIXED,    /* at offset, element_size * count bytes */
        PLACE_DATA_LOC, /* at offset a u32: length << 16 | offset from the start of the raw bytes */
        PLACE_REL_LOC,  /* the same, offset from the end of that u32 */
} FieldPlace;

typedef struct FieldValueName {
        uint64_t value;
        char *name;
} FieldValueName;

typedef struct PlanField {
        char *name;
        char *type; /* as declared: "unsigned long args[6]" */
        FieldKind kind;
        FieldPlace place;
        uint32_t offset;       /* bytes from the start of the raw bytes */
        uint32_t element_size; /* bytes of one element: 1, 2, 4 or 8 for numbers; 1 for texts and bytes */
        uint32_t count;        /* numbers: 1 scalar, n fixed array, 0 dynamic; texts: bytes of the fixed place, 0 dynamic */
        bool is_narrowed;      /* the lower half of 8 bytes */
        bool hex;              /* the format prints it so */
        bool flags;            /* values are or'ed together */
        char *delimiter;       /* between flag names, or NULL */
        FieldValueName *values;
        size_t n_values;
} PlanField;

typedef struct Plan {
        _Atomic(unsigned) n_refs; /* incremented relaxed by a holder of a reference, decremented with acq_rel */
        uint32_t type; /* the tracepoint's id, attr.config */
        char *group;
        char *name;
        char *print; /* format, as the kernel has it; NULL: it has none, or makes its lines otherwise */
        PlanField *fields; /* without the common_ ones, in the order of the format */
        size_t n_fields;
        uint32_t common_pid; /* where the raw bytes have the thread's number in the host's pid namespace, 4 bytes; 0: nowhere */
        uint32_t min_size; /* bytes that a raw record has at least: the end of the last fixed place */
        bool has_faults;   /* of a probe: a dynamic text of no bytes could not be read, because "" has one. print_type_string() */
} Plan;

/* An empty one that the caller fills; takes copies. NULL: no memory. */
Plan *plan_new(uint32_t type, const char *group, const char *name);
Plan *plan_ref(Plan *p);
Plan *plan_unref(Plan *p);
DEFINE_CLEANUP(Plan *, plan_unref)

/* Takes a copy of `n` bytes. -ENOMEM. Only before the plan is shared. */
int plan_set_print(Plan *p, const char *print, size_t n);
/* Appends a null field to fill in; NULL: no memory. Only before the plan is shared. */
PlanField *plan_add_field(Plan *p, const char *name, const char *type);
/* -ENOMEM. Only before the plan is shared. */
int plan_field_add_value(PlanField *f, uint64_t value, const char *name);

/* The field of this name; NULL: there is none. */
const PlanField *plan_find(const Plan *p, const char *name);

static inline bool field_is_number(const PlanField *f) {
        return f->kind != FIELD_TEXT && f->kind != FIELD_BYTES;
}
