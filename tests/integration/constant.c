/*
 * A function whose only instruction of note has a constant in it, called until a line comes on stdin: "CALLS WRONG", of which
 * the latter are those that gave another value. A breakpoint in the middle of that instruction changes the constant.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>

#define CONSTANT UINT64_C(0x1122334455667788)
#define CALLS_EACH 10000

uint64_t constant_get(void);

#ifdef __x86_64__
__asm__(".text\n"
        ".globl constant_get\n"
        ".type constant_get, @function\n"
        "constant_get:\n"
        "movabsq $0x1122334455667788, %rax\n" /* 48 b8, and 8 bytes of the constant */
        "ret\n"
        ".size constant_get, . - constant_get\n");
#else /* there an instruction is aligned, and nothing else can be probed */
__attribute__((noinline)) uint64_t constant_get(void) {
        return CONSTANT;
}
#endif

int main(void) {
        struct pollfd in = { .fd = 0, .events = POLLIN };
        uint64_t calls = 0, wrong = 0;

        puts("ready");
        fflush(stdout);
        while (poll(&in, 1, 0) == 0) {
                for (int i = 0; i < CALLS_EACH; i++)
                        wrong += constant_get() != CONSTANT;
                calls += CALLS_EACH;
        }
        printf("%" PRIu64 " %" PRIu64 "\n", calls, wrong);
        return 0;
}
