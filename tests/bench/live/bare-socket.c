/* Copies records into blocks of 64 KiB and writes these to a socket: what all goals are compared with. */
#include "tests/bench/live/bare.h"

static void flush(Bare *b) {
        bare_write(b, b->block, b->used);
        b->used = 0;
}

static void copy_and_write(Bare *b) {
        const uint8_t *record;
        size_t length;

        while ((record = bare_next(b, &length)))
                if (bare_append(b, record, length))
                        flush(b);
        flush(b);
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, NULL, copy_and_write);
}
