/*
 * A program to put user probes into: each line "N" on stdin is N calls of each place, with the numbers 0 to N - 1 and
 * the text "text NUMBER"; then it says on stdout "done N SEMAPHORE", the last being what the semaphore of its static
 * probe was when the calls began. It ends at the end of file. With an argument it changes its root to that first.
 *
 *   place_work(number, text)       returns number + 1000; has the label place_inside between two of its instructions
 * place_other(number, text)      returns number   perfd_place:ready              a static probe with a semaphore, at
 * two sites: both are passed by each call
 */
#define _SDT_HAS_SEMAPHORES 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>

unsigned short perfd_place_ready_semaphore __attribute__((section(".probes"), used));

long place_work(long number, const char *text);
long place_other(long number, const char *text);

__attribute__((noinline)) long place_work(long number, const char *text) {
        long sum = number;

        /* a symbol of its own, so that a test can learn where an instruction begins */
        __asm__ volatile("nop\n.globl place_inside\n.type place_inside, %%function\nplace_inside:\nnop"
                         : "+r"(sum)
                         : "r"(text));
        return sum + 1000;
}

__attribute__((noinline)) long place_other(long number, const char *text) {
        __asm__ volatile("nop" : "+r"(number) : "r"(text));
        return number;
}

int main(int argc, char **argv) {
        char line[32], text[32];

        if (argc > 1 && chroot(argv[1]) < 0) {
                perror(argv[1]);
                return EXIT_FAILURE;
        }
        while (fgets(line, sizeof(line), stdin)) {
                long n = atol(line), sum = 0;
                unsigned semaphore = *(volatile unsigned short *)&perfd_place_ready_semaphore;

                for (long i = 0; i < n; i++) {
                        snprintf(text, sizeof(text), "text %ld", i);
                        sum += place_work(i, text) + place_other(i, text);
                        STAP_PROBE2(perfd_place, ready, i, text);
                        __asm__ volatile("nop");
                        STAP_PROBE2(perfd_place, ready, i, text);
                }
                printf("done %ld %u\n", n, semaphore);
                fflush(stdout);
                if (sum < 0)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
