/* Strangers cause lines as quickly as they connect: the log is not theirs to fill. */
#include "client/relay/relay.h"

bool relay_lines_may(RelayLines *l, unsigned most, nsec_t window, unsigned *ret_left_out) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);

        *ret_left_out = 0;
        if (l->begin == 0 || now - l->begin >= window) {
                *ret_left_out = l->n_left_out;
                *l = (RelayLines){ .begin = now };
        }
        if (l->n >= most) {
                l->n_left_out++;
                return false;
        }
        l->n++;
        return true;
}
