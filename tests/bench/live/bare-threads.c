/*
 * Copies records into blocks of 64 KiB in one thread, which hands them to a second one that writes them to a socket:
 * what the hand-over costs. The queues are those of perfd's; the writer is woken for each block, if it sleeps.
 */
#include "tests/bench/live/bare.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/queue.h"
#include "daemon/base/thread.h"

#define N_BLOCKS 16 /* few, which stay in the caches */

typedef struct Block {
        size_t length;
        uint8_t bytes[BARE_BLOCK + BARE_RECORD_MAX];
} Block;

static Queue full, empty;
static int n_full = -1, n_empty = -1; /* eventfds: as many as are in the queue */
static Block *filling;

static Block *take(Queue *queue, int counter) {
        uint64_t one;

        while (read(counter, &one, sizeof(one)) < 0)
                if (errno != EINTR)
                        bare_fail("bare-threads: eventfd");
        return queue_pop(queue);
}

static void give(Queue *queue, int counter, Block *block) {
        if (!queue_push(queue, block) || write(counter, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
                bare_fail("bare-threads: handing over");
}

static int write_blocks(void *userdata) {
        const Bare *b = userdata;

        bare_be_urgent();
        for (;;) {
                Block *block = take(&full, n_full);

                bare_write(b, block->bytes, block->length);
                give(&empty, n_empty, block);
        }
        return 0;
}

static void hand_over(void) {
        if (filling->length == 0)
                return;
        give(&full, n_full, filling);
        filling = take(&empty, n_empty);
        filling->length = 0;
}

static void copy_and_hand_over(Bare *b) {
        const uint8_t *record;
        size_t length;

        while ((record = bare_next(b, &length))) {
                memcpy(filling->bytes + filling->length, record, length);
                filling->length += length;
                if (filling->length >= BARE_BLOCK)
                        hand_over();
        }
        hand_over();
}

static void begin(Bare *b) {
        static Thread writer = THREAD_NULL;

        n_full = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
        n_empty = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
        if (n_full < 0 || n_empty < 0 || queue_init(&full, N_BLOCKS) < 0 || queue_init(&empty, N_BLOCKS) < 0)
                bare_fail("bare-threads");
        for (int i = 0; i < N_BLOCKS; i++) {
                Block *block = malloc(sizeof(*block));

                if (!block)
                        bare_fail("bare-threads");
                memset(block, 0, sizeof(*block)); /* its pages are there before the clock runs */
                give(&empty, n_empty, block);
        }
        filling = take(&empty, n_empty);
        if (thread_start(&writer, THREAD_DISPATCHER, "writer", -1, write_blocks, b) < 0)
                bare_fail("bare-threads: thread");
}

int main(int argc, char **argv) {
        return bare_run(argc, argv, begin, copy_and_hand_over);
}
