/*
 * The load of shares.py: 24 functions, each of which works for another part of the time, in turns that are short beside the time between two
 * samples. Their parts are exactly those of 1 to 24.
 *
 *     shares-load MILLISECONDS      of CPU time
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define PART 200 /* additions: some 100 ns */

#define WORK(n)                                                                                                                \
        __attribute__((noinline, noclone)) static uint64_t work_##n(uint64_t sum) {                                            \
                for (int i = 0; i < (n) * PART; i++)                                                                           \
                        __asm__ volatile("" : "+r"(sum));                                                                      \
                return sum + (n);                                                                                              \
        }
#define ALL(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24)
#define CALL(n) sum = work_##n(sum);

ALL(WORK)

static int64_t cpu_ms(void) {
        struct timespec t;

        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char *argv[]) {
        const int64_t end = argc == 2 ? atoll(argv[1]) : 0;
        uint64_t sum = 0;

        while (cpu_ms() < end) {
                ALL(CALL)
        }
        return end > 0 && sum > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
