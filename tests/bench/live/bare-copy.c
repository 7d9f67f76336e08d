/* Copies records into blocks of 64 KiB, and forgets the blocks. */
#include "tests/bench/live/bare.h"

static void copy(Bare *b) {
        const uint8_t *record;
        size_t length;

        while ((record = bare_next(b, &length)))
                if (bare_append(b, record, length))
                        b->used = 0;
        b->used = 0;
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, NULL, copy);
}
