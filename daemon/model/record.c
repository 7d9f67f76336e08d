/* From the kernel's record types to what a subscriber can ask for. */
#include "daemon/model/record.h"

#include <linux/perf_event.h>

#include "daemon/base/cleanup.h"

unsigned record_kind_of(uint32_t type) {
        static const uint8_t kinds[] = {
                [0] = RECORD_KIND_UNKNOWN,
                [PERF_RECORD_SAMPLE] = RECORD_KIND_UNASKED,
#define RECORD_TYPE(type, item, decoder, encoder, kind) [PERF_RECORD_##type] = RECORD_KIND_##kind,
#include "proto/record.def"
        };

        return type < ARRAY_SIZE(kinds) ? kinds[type] : RECORD_KIND_UNKNOWN;
}
