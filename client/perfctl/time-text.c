/* The words of a second are kept: localtime_r(3) for each line of a fast stream would cost more than the rest of the line. */
#include "client/perfctl/time-text.h"

#include <time.h>

#define NSEC_PER_SEC INT64_C(1000000000)
#define NSEC_PER_USEC INT64_C(1000)
#define SECOND_WIDTH 7 /* of a clock that began at boot, for the first four months */

static void put_digits(Output *o, uint64_t number, size_t width, char padding) {
        char digits[20], *at = digits + sizeof(digits);

        do
                *--at = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        for (size_t n = (size_t)(digits + sizeof(digits) - at); n < width; n++)
                output_put_char(o, padding);
        output_put(o, at, (size_t)(digits + sizeof(digits) - at));
}

/* Seconds and nine digits. */
static void put_seconds(Output *o, uint64_t nsec, bool is_padded) {
        put_digits(o, nsec / (uint64_t)NSEC_PER_SEC, is_padded ? SECOND_WIDTH : 0, ' ');
        output_put_char(o, '.');
        put_digits(o, nsec % (uint64_t)NSEC_PER_SEC, 9, '0');
}

/* Streams in the order of each CPU go back in time too. */
static void put_delta(TimeText *t, Output *o, uint64_t nsec, bool is_padded) {
        uint64_t before = t->before > 0 ? t->before : nsec;

        output_put_char(o, nsec < before ? '-' : '+');
        put_seconds(o, nsec < before ? before - nsec : nsec - before, is_padded);
        t->before = nsec;
}

static void put_wall(TimeText *t, Output *o, uint64_t nsec) {
        int64_t wall = (int64_t)(nsec + (uint64_t)t->wall_offset), rest = wall % NSEC_PER_SEC;
        time_t second;
        struct tm tm;

        rest += rest < 0 ? NSEC_PER_SEC : 0; /* before 1970: of a host whose clock was never set */
        second = (time_t)((wall - rest) / NSEC_PER_SEC);
        if (!*t->words || second != t->second) {
                t->second = second;
                if (!localtime_r(&second, &tm) || strftime(t->words, sizeof(t->words), "%b %d %H:%M:%S", &tm) == 0)
                        strcpy(t->words, "?"); /* a year that does not fit in an int: 64 bits of ns cannot say it */
        }
        output_put_string(o, t->words);
        output_put_char(o, '.');
        put_digits(o, (uint64_t)(rest / NSEC_PER_USEC), 6, '0');
}

void time_text_put(TimeText *t, Output *o, uint64_t nsec, bool is_padded) {
        if (nsec == 0) {
                output_put_char(o, '-');
                for (size_t i = 1; is_padded && i < TIME_WIDTH(t->form); i++)
                        output_put_char(o, ' ');
        } else if (t->form == TIME_WALL)
                put_wall(t, o, nsec);
        else if (t->form == TIME_CLOCK)
                put_seconds(o, nsec, is_padded);
        else
                put_delta(t, o, nsec, is_padded);
}
