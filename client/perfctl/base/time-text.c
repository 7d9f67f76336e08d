/* The words of a second are kept: localtime_r(3) for each line of a fast stream would cost more than the rest of the line. */
#include "client/perfctl/base/time-text.h"

#include <time.h>

#define NSEC_PER_SEC INT64_C(1000000000)
#define NSEC_PER_USEC INT64_C(1000)
#define SECOND_WIDTH 7 /* of a clock that began at boot, for the first four months */

static char *put_nanoseconds(char *to, uint32_t nsec) {
        *to = '.';
        to[1] = (char)('0' + nsec / 100000000);
        digits_put_8(to + 2, nsec % 100000000);
        return to + 10;
}

/* Seconds and nine digits. */
static void put_seconds(Output *o, uint64_t nsec, bool is_padded) {
        char *to = output_begin(o, SECOND_WIDTH + DECIMAL_ROOM + 10);
        const uint64_t second = nsec / (uint64_t)NSEC_PER_SEC;

        for (uint64_t least = UINT64_C(1000000); is_padded && least > 1 && second < least; least /= 10) /* SECOND_WIDTH */
                *to++ = ' ';
        output_end(o, put_nanoseconds(decimal_put(to, second), (uint32_t)(nsec % (uint64_t)NSEC_PER_SEC)));
}

/* The same, neither padded nor with new words before the next second. */
static void put_clock(TimeText *t, Output *o, uint64_t nsec) {
        const int64_t second = (int64_t)(nsec / (uint64_t)NSEC_PER_SEC);
        char *to = output_begin(o, sizeof(t->words) + 10);

        if (!*t->words || second != t->second) {
                t->second = second;
                t->n_words = (size_t)(decimal_put(t->words, (uint64_t)second) - t->words);
        }
        memcpy(to, t->words, sizeof(t->words)); /* all of it, which is one instruction or two */
        output_end(o, put_nanoseconds(to + t->n_words, (uint32_t)(nsec - (uint64_t)second * (uint64_t)NSEC_PER_SEC)));
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
        uint32_t micro;
        char *to;

        rest += rest < 0 ? NSEC_PER_SEC : 0; /* before 1970: of a host whose clock was never set */
        second = (time_t)((wall - rest) / NSEC_PER_SEC);
        if (!*t->words || second != t->second) {
                t->second = second;
                if (!localtime_r(&second, &tm) || strftime(t->words, sizeof(t->words), "%b %d %H:%M:%S", &tm) == 0)
                        strcpy(t->words, "?"); /* a year that does not fit in an int: 64 bits of ns cannot say it */
                t->n_words = strlen(t->words);
        }
        to = output_begin(o, sizeof(t->words) + 7);
        memcpy(to, t->words, sizeof(t->words)); /* all of it, which is one instruction or two */
        to += t->n_words;
        micro = (uint32_t)(rest / NSEC_PER_USEC);
        *to = '.';
        digits_put_pair(to + 1, micro / 10000);
        digits_put_pair(to + 3, micro / 100 % 100);
        digits_put_pair(to + 5, micro % 100);
        output_end(o, to + 7);
}

void time_text_put(TimeText *t, Output *o, uint64_t nsec, bool is_padded) {
        if (nsec == 0) {
                output_put_char(o, '-');
                for (size_t i = 1; is_padded && i < TIME_WIDTH(t->form); i++)
                        output_put_char(o, ' ');
        } else if (t->form == TIME_WALL)
                put_wall(t, o, nsec);
        else if (t->form == TIME_CLOCK && !is_padded)
                put_clock(t, o, nsec);
        else if (t->form == TIME_CLOCK)
                put_seconds(o, nsec, true);
        else
                put_delta(t, o, nsec, is_padded);
}
