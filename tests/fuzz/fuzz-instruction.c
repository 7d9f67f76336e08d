/*
 * Bytes as instructions of x86-64, one behind the other. A size is never more than there is of it, depends on no byte behind the
 * instruction, and is that of no part of it.
 */
#include <stdlib.h>

#include "daemon/kernel/elf/instruction.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        for (size_t at = 0; at < length;) {
                size_t size = x86_64_instruction_size(bytes + at, length - at);

                if (size > X86_64_INSTRUCTION_SIZE_MAX || size > length - at)
                        abort();
                for (size_t n = 0; n < size; n++)
                        if (x86_64_instruction_size(bytes + at, n) != 0)
                                abort();
                if (size > 0 && x86_64_instruction_size(bytes + at, size) != size)
                        abort();
                at += size > 0 ? size : 1;
        }
        return 0;
}
