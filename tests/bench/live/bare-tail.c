/* The least that a consumer can do: give the space back without a look at what was in it. */
#include "tests/bench/live/bare.h"

static void advance(Bare *b) {
        b->tail = b->head;
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, NULL, advance);
}
