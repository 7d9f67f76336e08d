/*
 * Any plan that a format could give, and any raw bytes: no field is read outside of them, the checks before encoding
 * and the encoder agree on what is decodable, and what is encoded has exactly the numbers and texts of the fields.
 *
 *     | n fields (1) | kind, place, element size, count, offset (5 bytes) each | raw bytes |
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/fields.h"
#include "daemon/encode/item.h"
#include "proto/perfd.pb-c.h"

#define FIELD_BYTES_EACH 5
#define ROOM ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static Plan *make_plan(const uint8_t *bytes, size_t n) {
        _cleanup_(plan_unrefp) Plan *p = plan_new(1, "fuzz", "fields");

        for (size_t i = 0; p && i < n; i++, bytes += FIELD_BYTES_EACH) {
                PlanField *f = plan_add_field(p, "f", "f");
                uint32_t end;

                if (!f)
                        return NULL;
                f->kind = (FieldKind)(bytes[0] % _FIELD_KIND_MAX);
                f->place = (FieldPlace)(bytes[1] % 3);
                f->element_size = field_is_number(f) ? 1u << bytes[2] % 4 : 1;
                f->count = f->place == PLACE_FIXED ? 1 + bytes[3] % 32 : 0;
                f->offset = bytes[4];
                end = f->offset + (f->place == PLACE_FIXED ? f->element_size * f->count : 4);
                if (end > p->min_size)
                        p->min_size = end;
        }
        return TAKE_PTR(p);
}

/* Numbers and texts that an item of this sample has. */
static void count_fields(const Plan *p, const uint8_t *raw, size_t raw_size, size_t *ret_numbers, size_t *ret_texts) {
        size_t numbers = 0, texts = 0, length;
        const uint8_t *text;
        uint32_t count;
        uint64_t value;

        for (size_t i = 0; i < p->n_fields; i++) {
                const PlanField *f = &p->fields[i];

                if (!field_is_number(f)) {
                        if (field_text(f, raw, raw_size, &text, &length) != 0)
                                abort();
                        if (text < raw || text + length > raw + raw_size)
                                abort();
                        texts++;
                        continue;
                }
                if (field_count(f, raw, raw_size, &count) != 0)
                        abort();
                for (uint32_t k = 0; k < count; k++)
                        if (field_number(f, raw, raw_size, k, &value) != 0)
                                abort();
                numbers += count + (f->place != PLACE_FIXED);
        }
        *ret_numbers = numbers;
        *ret_texts = texts;
}

static void check(Plan *p, const uint8_t *raw, size_t raw_size) {
        _cleanup_(encode_plan_unrefp) EncodePlan *e = encode_plan_new(p, 1, PAYLOAD_FIELDS, NULL, 0);
        Record r = { .comm = "fuzz", .raw = raw, .raw_size = (uint32_t)raw_size };
        size_t length, numbers, texts;
        static uint8_t item[ROOM];
        Perfd__V1__Packet *packet;
        int code;

        if (!e)
                return;
        code = item_encode(e, &r, item, ROOM, &length);
        if (plan_check(p, raw, raw_size) != 0) {
                if (code != ITEM_E_UNDECODABLE)
                        abort();
                return;
        }
        if (code == ITEM_E_NO_ROOM) /* many fields that point at the same bytes */
                return;
        if (code != 0)
                abort();
        count_fields(p, raw, raw_size, &numbers, &texts);
        packet = perfd__v1__packet__unpack(NULL, length, item);
        if (!packet || packet->n_items != 1)
                abort();
        if (packet->items[0]->n_numbers != numbers || packet->items[0]->n_texts != texts)
                abort();
        perfd__v1__packet__free_unpacked(packet, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_(plan_unrefp) Plan *p = NULL;
        _cleanup_free_ uint8_t *raw = NULL;
        size_t n, used, raw_size;

        if (length < 1 || length > UINT16_MAX)
                return 0;
        n = bytes[0] % 16;
        used = 1 + n * FIELD_BYTES_EACH;
        if (length < used)
                return 0;
        p = make_plan(bytes + 1, n);
        raw_size = length - used;
        raw = malloc(raw_size ? raw_size : 1);
        if (!p || !raw)
                return 0;
        memcpy(raw, bytes + used, raw_size);
        check(p, raw, raw_size);
        return 0;
}
