/* Bytes as a jitdump file: whatever they say, reading ends, and names lie within them. */
#include <stdlib.h>

#include "client/symbols/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        JitHeader header;
        JitRecord record;

        if (!jitdump_read_header(bytes, length, &header))
                return 0;
        for (uint64_t at = header.size; at < length; at += record.size) {
                const int r = jitdump_read_record(&header, bytes + at, length - at, &record);

                if (r != 1)
                        break;
                MUST(record.size >= 16);
                if (record.type == JIT_CODE_LOAD)
                        MUST((const uint8_t *)record.name >= bytes + at && record.n_name <= JITDUMP_NAME_MAX + 1 &&
                             (const uint8_t *)record.name + record.n_name <= bytes + length);
        }
        return 0;
}
