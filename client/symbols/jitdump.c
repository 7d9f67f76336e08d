/* The code itself, line numbers and unwinding tables are stepped over by the size of their record. */
#include "client/symbols/jitdump.h"

#include <byteswap.h>
#include <string.h>

#define MAGIC 0x4A695444
#define HEADER_SIZE 40 /* magic, version, total_size, elf_mach, pad1, pid: u32; timestamp, flags: u64 */
#define RECORD_HEADER_SIZE 16 /* id, total_size: u32; timestamp: u64 */
#define LOAD_SIZE 40 /* pid, tid: u32; vma, code_addr, code_size, code_index: u64; name */
#define MOVE_SIZE 48 /* pid, tid: u32; vma, old_code_addr, new_code_addr, code_size, code_index: u64 */
#define FLAG_ARCH_TIMESTAMP 1

static uint32_t get_u32(const JitHeader *header, const uint8_t *at) {
        uint32_t v;

        memcpy(&v, at, sizeof(v));
        return header->is_swapped ? bswap_32(v) : v;
}

static uint64_t get_u64(const JitHeader *header, const uint8_t *at) {
        uint64_t v;

        memcpy(&v, at, sizeof(v));
        return header->is_swapped ? bswap_64(v) : v;
}

bool jitdump_read_header(const uint8_t *bytes, size_t n, JitHeader *ret) {
        JitHeader header = { .is_swapped = false };

        if (n < HEADER_SIZE)
                return false;
        header.is_swapped = get_u32(&header, bytes) == bswap_32(MAGIC);
        if (get_u32(&header, bytes) != MAGIC || get_u32(&header, bytes + 4) != 1)
                return false;
        header.size = get_u32(&header, bytes + 8);
        header.has_other_clock = (get_u64(&header, bytes + 32) & FLAG_ARCH_TIMESTAMP) != 0;
        if (header.size < HEADER_SIZE)
                return false;
        *ret = header;
        return true;
}

static int read_load(const JitHeader *header, const uint8_t *at, size_t n, JitRecord *ret) {
        const size_t whole = ret->size - RECORD_HEADER_SIZE;
        const size_t room = whole < LOAD_SIZE + JITDUMP_NAME_MAX + 1 ? whole : LOAD_SIZE + JITDUMP_NAME_MAX + 1;

        if (whole < LOAD_SIZE + 1)
                return -1;
        if (n < room)
                return 0;
        ret->address = get_u64(header, at + 16);
        ret->length = get_u64(header, at + 24);
        ret->name = (const char *)at + LOAD_SIZE;
        ret->n_name = strnlen(ret->name, room - LOAD_SIZE);
        return 1;
}

int jitdump_read_record(const JitHeader *header, const uint8_t *bytes, size_t n, JitRecord *ret) {
        JitRecord record = { .type = 0 };
        int r = 1;

        if (n < RECORD_HEADER_SIZE)
                return 0;
        record.type = get_u32(header, bytes);
        record.size = get_u32(header, bytes + 4);
        record.time = get_u64(header, bytes + 8);
        if (record.size < RECORD_HEADER_SIZE)
                return -1;
        bytes += RECORD_HEADER_SIZE;
        n -= RECORD_HEADER_SIZE;
        if (record.type == JIT_CODE_LOAD)
                r = read_load(header, bytes, n, &record);
        else if (record.type == JIT_CODE_MOVE) {
                if (record.size - RECORD_HEADER_SIZE < MOVE_SIZE)
                        return -1;
                if (n < MOVE_SIZE)
                        return 0;
                record.old_address = get_u64(header, bytes + 16);
                record.address = get_u64(header, bytes + 24);
                record.length = get_u64(header, bytes + 32);
        }
        if (r == 1)
                *ret = record;
        return r;
}
