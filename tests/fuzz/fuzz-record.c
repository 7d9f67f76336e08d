/*
 * Any bytes as a kernel record, by several layouts: what decodes must be encodable, and what is encoded must be one
 * item for protobuf-c. The first byte of the input chooses the layout, the rest is the record, with the header's size
 * set right when the highest bit says so, so that the parts inside are reached. With the next bit the layout is of the
 * input's own making, from eight bytes before the record, so that every combination of parts is found.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/record.h"
#include "daemon/encode/item.h"
#include "proto/perfd.pb-c.h"

#define FIX_SIZE 0x80
#define OWN_LAYOUT 0x40
#define ROOM ((size_t)512 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const uint64_t sample_types[] = {
        SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW,
        SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        SAMPLE_TYPE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
        SAMPLE_TYPE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
                PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
        0,
};

static void must_be_one_item(const uint8_t *item, size_t length) {
        Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, length, item);

        if (!p || p->n_items != 1 || perfd__v1__packet__get_packed_size(p) != length)
                abort();
        perfd__v1__packet__free_unpacked(p, NULL);
}

static void check(const SampleLayout *l, const uint8_t *bytes, size_t length, EncodePlan *plan) {
        static uint8_t item[ROOM];
        Record r;
        uint64_t id;
        size_t n;
        int code;

        (void)record_peek_id(bytes, length, &id);
        if (record_decode(l, bytes, length, &r) != 0)
                return;
        code = r.type == PERF_RECORD_SAMPLE ? item_encode(plan, &r, item, ROOM, &n)
                                            : side_item_encode(&r, 5, item, ROOM, &n);
        if (code != 0)
                abort(); /* there is room for all that fits into a record, and without a plan nothing to contradict */
        must_be_one_item(item, n);
}

/* | sample type (4) | read format (1) | branches (1) | registers of user space (1) | of the interrupt (1) | */
static int own_layout(const uint8_t *bytes, size_t length, SampleLayout *l) {
        struct perf_event_attr attr = { .sample_id_all = 1 };
        uint32_t sample_type;

        if (length < 8)
                return REFUSED_UNSUPPORTED;
        memcpy(&sample_type, bytes, sizeof(sample_type));
        attr.sample_type = sample_type;
        attr.read_format = bytes[4];
        attr.branch_sample_type = (uint64_t)bytes[5] << 12; /* up to PERF_SAMPLE_BRANCH_COUNTERS */
        attr.sample_regs_user = (uint64_t)bytes[6] << 56 | bytes[6];
        attr.sample_regs_intr = bytes[7];
        return sample_layout_init(l, &attr);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_(encode_plan_unrefp) EncodePlan *plan = encode_plan_new(NULL, 1, PAYLOAD_RAW, NULL, 0);
        _cleanup_free_ uint8_t *record = NULL;
        size_t skip = 1;
        SampleLayout l;
        uint16_t size;

        if (length < 1 || length > UINT16_MAX || !plan)
                return 0;
        if (bytes[0] & OWN_LAYOUT) {
                if (own_layout(bytes + 1, length - 1, &l) != 0)
                        return 0;
                skip = 9;
        } else if (sample_layout_init_type(&l, sample_types[(bytes[0] & ~FIX_SIZE) % ARRAY_SIZE(sample_types)]) != 0)
                abort();
        record = malloc(length - skip + 1); /* exactly as long, and unaligned: the record begins at 1 */
        if (!record)
                return 0;
        memcpy(record + 1, bytes + skip, length - skip);
        size = (uint16_t)(length - skip);
        if ((bytes[0] & FIX_SIZE) && size >= 8)
                memcpy(record + 1 + 6, &size, sizeof(size));
        check(&l, record + 1, size, plan);
        return 0;
}
