/*
 * How old records are when a loop that does nothing else looks at them, at the ticks of perfd's readers: what this machine
 * lets anybody reach. The clock is read once for each drain, behind the ring's head.
 */
#include "daemon/base/clock.h"
#include "tests/bench/live/bare.h"
#include "tests/bench/live/latency.h"

static Latency latency;

static void say(void) {
        latency_print(&latency);
}

static void begin(Bare *b) {
        b->say = say;
}

static void look(Bare *b) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        const uint8_t *record;
        size_t length;

        while ((record = bare_next(b, &length))) {
                uint64_t time;

                memcpy(&time, record + BARE_TIME, sizeof(time));
                latency_add(&latency, time, now);
        }
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, begin, look);
}
