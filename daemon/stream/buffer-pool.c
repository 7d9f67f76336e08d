/*
 * The file cannot shrink below what is mapped, and others can only read it, as those of rings.
 */
#include "daemon/stream/buffer-pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/error-trail.h"
#include "daemon/stream/memory-file.h"

static int pool_open(BufferPool *p) {
        void *map;

        p->fd = memory_file_open("perfd-packets");
        if (p->fd < 0 || ftruncate(p->fd, (off_t)POOL_BYTES) < 0)
                return error_origin(-errno);
        map = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
        if (map == MAP_FAILED)
                return error_origin(-errno);
        p->bytes = map;
        return fcntl(p->fd, F_ADD_SEALS, MEMORY_FILE_SEALS) < 0 ? error_origin(-errno) : 0;
}

int buffer_pool_new(BufferPool **ret) {
        _cleanup_(buffer_pool_unrefp) BufferPool *p = malloc(sizeof(*p));
        int r;

        if (!p)
                return error_origin(-ENOMEM);
        *p = (BufferPool){ .fd = -1, .n_free = POOL_BUFFERS };
        atomic_init(&p->n_refs, 1);
        for (unsigned i = 0; i < POOL_BUFFERS; i++)
                p->free[i] = (uint8_t)(POOL_BUFFERS - 1 - i);
        r = pool_open(p);
        if (r == 0)
                *ret = TAKE_PTR(p);
        return r;
}

BufferPool *buffer_pool_ref(BufferPool *p) {
        atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
        return p;
}

BufferPool *buffer_pool_unref(BufferPool *p) {
        if (!p || atomic_fetch_sub_explicit(&p->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        if (p->bytes) {
                if (!p->outlives)
                        memory_file_free_pages(p->bytes, POOL_BYTES);
                munmap(p->bytes, POOL_BYTES);
        }
        close_fd(p->fd);
        free(p);
        return NULL;
}

int buffer_pool_fill(BufferPool *p) {
        if (p->has_memory)
                return 0; /* the dispatcher knows that, and may look at it now */
        if (fallocate(p->fd, 0, 0, (off_t)POOL_BYTES) < 0)
                return error_origin(-errno);
        p->has_memory = true;
        return 0;
}

uint8_t *buffer_pool_take(BufferPool *p, unsigned *ret_buffer) {
        unsigned buffer;

        if (p->n_free == 0)
                return NULL;
        assert(p->has_memory);
        buffer = p->free[--p->n_free];
        assert(p->uses[buffer] == 0);
        p->uses[buffer] = 1;
        *ret_buffer = buffer;
        return p->bytes + buffer * POOL_BUFFER;
}

void buffer_pool_use(BufferPool *p, unsigned buffer) {
        assert(p->uses[buffer] > 0);
        p->uses[buffer]++;
}

void buffer_pool_leave(BufferPool *p, unsigned buffer) {
        assert(p->uses[buffer] > 0);
        if (--p->uses[buffer] == 0)
                p->free[p->n_free++] = (uint8_t)buffer;
}
