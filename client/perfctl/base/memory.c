#include "client/perfctl/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

void *must_have(void *memory) {
        if (!memory) {
                fputs("perfctl: out of memory\n", stderr);
                exit(EXIT_FAILURE);
        }
        return memory;
}

void must_be_done(int code) {
        (void)must_have(code == 0 ? &code : NULL);
}
