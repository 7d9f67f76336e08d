/*
 * For external events, whose samples come from clients: their fields as a Plan, and typed values as the raw bytes that this
 * Plan describes, so that matching and encoding know no difference to a tracepoint. Pure, any thread.
 *
 *     | numbers, each at a multiple of its size | u32 place of each text | the texts |
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/base/strings.h"
#include "daemon/model/plan.h"

enum {
        EXTERNAL_FIELDS_MAX = 64,
        EXTERNAL_RAW_MAX = 30 * 1024, /* bytes of one sample: its fields and its raw bytes fit into one batch */
};

/* fields: "name:type", with the types u8 to u64, s8 to s64, bool, text, bytes. REFUSED_INVALID "bad-field". */
int external_plan_new(const char *name, const Strings *fields, Plan **ret, Explanation *e);

typedef struct ExternalInput {
        uint64_t number;      /* signed ones in two's complement */
        const uint8_t *text;  /* text and bytes */
        size_t length;
        bool is_number, is_signed;
} ExternalInput;

/*
 * One sample's values, in the order of the fields. REFUSED_INVALID "bad-value": their number, type, range, a zero byte in a
 * text, or that they are longer than EXTERNAL_RAW_MAX, with the field's name. ret_raw has EXTERNAL_RAW_MAX bytes.
 */
int external_raw_encode(const Plan *p, const ExternalInput *values, size_t n_values, uint8_t *ret_raw, size_t *ret_size,
                        Explanation *e);
