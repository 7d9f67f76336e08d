/*
 * A program of which a test knows how often each thing happens. It waits for a line before it does anything, so that
 * events can be added on its pid first, and says what it has done after each.
 *
 * What is said on stdout (>) and expected on stdin (<), a line each; addresses are those of the running process:
 *   > ready PID WATCHED CALL     the addresses of fire_watched, a long, and of fire_call()
 *   < calls N                    fire_call(i, "text i") for i from 0 to N - 1, which returns 2 i + 1
 *   < syscalls N                 getppid(2)
 *   < touches N                  fire_watched = i, and nothing else touches it
 *   < hits N                     the static probe fire:hit with (i, "text i", -i), which has a semaphore
 *   < faults N                   page faults, by the first touch of N new pages
 *   < spins N                    N ms of CPU time, of user space
 *   > done N X                   X: of hits the semaphore, of faults the address of the first page, else 0
 * End of file ends it, with status 0.
 *
 * All that it needs is in memory before it is ready, so that there are no other page faults. fire_inside is a symbol for
 * a place behind the beginning of fire_call(), where an instruction begins, too.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

unsigned short fire_hit_semaphore __attribute__((section(".probes"), used));
volatile long fire_watched __attribute__((aligned(8)));

long fire_call(long number, const char *text);

__attribute__((noinline, noclone)) long fire_call(long number, const char *text) {
        long sum = number;

        __asm__ volatile("nop\n.globl fire_inside\n.type fire_inside, %%function\nfire_inside:\nnop" : "+r"(sum) : "r"(text));
        return 2 * sum + 1;
}

static void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

static uintptr_t fire_calls(long n) {
        char text[32];

        for (long i = 0; i < n; i++) {
                snprintf(text, sizeof(text), "text %ld", i);
                if (fire_call(i, text) != 2 * i + 1)
                        abort();
        }
        return 0;
}

static uintptr_t fire_syscalls(long n) {
        for (long i = 0; i < n; i++)
                syscall(SYS_getppid);
        return 0;
}

static uintptr_t fire_touches(long n) {
        for (long i = 0; i < n; i++)
                fire_watched = i;
        return 0;
}

static uintptr_t fire_hits(long n) {
        uintptr_t semaphore = *(volatile unsigned short *)&fire_hit_semaphore;
        char text[32];

        for (long i = 0; i < n; i++) {
                snprintf(text, sizeof(text), "text %ld", i);
                STAP_PROBE3(fire, hit, i, text, (int)-i);
        }
        return semaphore;
}

/* The pages stay: unmapping and mapping others would need tables of pages again. */
static uintptr_t fire_faults(long n) {
        size_t size = (size_t)sysconf(_SC_PAGESIZE);
        volatile char *pages = mmap(NULL, (size_t)n * size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (pages == MAP_FAILED)
                fail("mmap");
        if (madvise((void *)pages, (size_t)n * size, MADV_NOHUGEPAGE) < 0)
                fail("madvise");
        for (long i = 0; i < n; i++)
                pages[(size_t)i * size] = 1;
        return (uintptr_t)pages;
}

static long cpu_time_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Mostly in user space: to ask how late it is is a system call. */
static uintptr_t fire_spins(long n) {
        long begin = cpu_time_ns();

        while (cpu_time_ns() - begin < n * 1000000)
                for (volatile int i = 0; i < 10000; i++)
                        ;
        return 0;
}

static const struct {
        const char *word;
        uintptr_t (*fire)(long n);
} words[] = {
        { "calls", fire_calls },   { "syscalls", fire_syscalls }, { "touches", fire_touches },
        { "hits", fire_hits },     { "faults", fire_faults },     { "spins", fire_spins },
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))

int main(void) {
        char line[64], word[32];
        long n;

        setvbuf(stdout, NULL, _IOLBF, 256);
        if (mlockall(MCL_CURRENT) < 0)
                fail("mlockall");
        for (size_t i = 0; i < N_WORDS; i++)
                words[i].fire(1);
        printf("ready %d %#lx %#lx\n", (int)getpid(), (unsigned long)&fire_watched, (unsigned long)&fire_call);
        while (fgets(line, sizeof(line), stdin)) {
                uintptr_t said = 0;
                size_t i = 0;

                if (sscanf(line, "%31s %ld", word, &n) != 2 || n < 0)
                        return EXIT_FAILURE;
                while (i < N_WORDS && strcmp(words[i].word, word) != 0)
                        i++;
                if (i == N_WORDS)
                        return EXIT_FAILURE;
                said = words[i].fire(n);
                printf("done %ld %#lx\n", n, (unsigned long)said);
        }
        return EXIT_SUCCESS;
}
