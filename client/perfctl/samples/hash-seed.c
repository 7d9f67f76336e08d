#include "client/perfctl/samples/hash-seed.h"

#include <stddef.h>
#include <sys/random.h>
#include <time.h>

#include "client/perfctl/base/memory.h"

uint64_t seed_new(void) {
        uint64_t seed;
        struct timespec now;

        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
                return seed;
        (void)clock_gettime(CLOCK_MONOTONIC, &now); /* early in boot: still not the same each time */
        return (uint64_t)now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15);
}

void ids_must_have(int code) {
        static char there;

        (void)must_have(code < 0 ? NULL : &there);
}
