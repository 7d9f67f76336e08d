/*
 * Any bytes as the content of a ring, and any head, several times in a row: a drain ends, reads nothing outside the
 * ring, and every record that it took is counted once.
 *
 *     | ring size, batches, few subscriptions (1) | rounds: flags (1) | how far the head moves (8) | n (2) | n bytes |
 *
 *     flags    | 7 6 5 4: words behind the head to write to | 3 2 1: write 2^x times | 0: keep the batches |
 *
 * A head that moves by 0 moves by what was written. Without its batches the reader starves, and asks for its backlog.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/perfd.pb-c.h"
#include "tests/unit/reader-rig.h"

#define ROUNDS 64
#define BUDGET ((uint64_t)192 << 10) /* bytes written: more than all batches hold, so that readers starve */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_batch(const Batch *b) {
        uint64_t mask = 0;
        size_t used = 0;

        for (size_t i = 0; i < b->n_entries; i++) {
                const BatchEntry *e = &b->entries[i];
                Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, e->length, b->arena + entry_offset(e));

                if (!p || p->n_items != 1)
                        abort();
                perfd__v1__packet__free_unpacked(p, NULL);
                mask |= e->mask;
                used += e->length;
                if (i > 0 && e->time < e[-1].time)
                        abort();
        }
        if (mask != b->mask || used != b->used)
                abort();
}

static void take_batches(Rig *rig) {
        Batch *b;

        while ((b = queue_pop(&rig->reader.full))) {
                check_batch(b);
                if (!queue_push(&rig->reader.free, b))
                        abort();
        }
}

/* Gives back how many bytes. */
static uint64_t write_bytes(Rig *rig, uint8_t flags, const uint8_t *bytes, size_t n, uint64_t budget) {
        uint64_t begin = rig->page->data_head + (uint64_t)(flags >> 4) * 8, at = begin;

        for (unsigned times = 1u << (flags >> 1 & 7); times > 0 && at - begin + n <= rig->size && at - begin < budget; times--) {
                size_t place = at & (rig->size - 1), first = n < rig->size - place ? n : rig->size - place;

                memcpy(rig->data + place, bytes, first);
                memcpy(rig->data, bytes + first, n - first);
                at += n;
        }
        return at - begin;
}

static void drain(Rig *rig, bool starve) {
        uint64_t head = rig->page->data_head;

        while (reader_drain(&rig->reader) == READER_E_STARVED && !starve)
                take_batches(rig);
        if (!starve && rig->page->data_tail != head)
                abort();
        if (rig->page->data_tail != rig->reader.ring.tail)
                abort();
        if (!starve)
                (void)reader_push_batch(&rig->reader);
        else
                (void)reader_backlog_watermark(&rig->reader, head);
}

/* Two streams that speak, with one subscription each, in two encodings: for runs and mixtures of the plainest kind. */
static void take_subscriptions(Rig *rig) {
        SnapshotStream *streams = (SnapshotStream *)rig->reader.snapshot->cpus[0].streams;

        for (size_t i = 0; i < 2; i++) {
                streams[i].is_standby = false;
                streams[i].path = PATH_INTERLEAVED;
                streams[i].only = streams[i].of->routes[i == 0 ? 0 : streams[i].of->n_routes - 1];
                streams[i].routes = &streams[i].only;
                streams[i].n_routes = 1;
        }
}

/*
 * To make a rig takes a hundred times as long as most inputs do: megabytes of batches and rings, which a sanitizer's allocator
 * gives fresh each time. So there is one for each shape, and what an input has changed is put back.
 */
typedef struct Shape {
        Rig rig, made; /* as it is, and as rig_init() left it */
        SnapshotStream streams[RIG_STREAMS];
        Batch *batches[8];
        size_t n_batches;
} Shape;

static Shape *shapes[32]; /* by the first byte of an input */

/* Whatever queue they are in. Those that are taken for a command only are none of the pool, and none is sent here. */
static void gather_batches(Shape *shape) {
        Reader *r = &shape->rig.reader;
        Batch *b;

        shape->n_batches = 0;
        while ((b = queue_pop(&r->full)) || (b = queue_pop(&r->free)) || (b = r->n_spare > 0 ? r->spare[--r->n_spare] : NULL) ||
               (b = TAKE_PTR(r->batch))) {
                assert(shape->n_batches < sizeof(shape->batches) / sizeof(shape->batches[0]));
                shape->batches[shape->n_batches++] = b;
        }
        assert(shape->n_batches == r->n_pool);
}

static Shape *shape_make(uint8_t first) {
        Shape *shape = calloc(1, sizeof(*shape));

        assert(shape);
        rig_init(&shape->rig, (size_t)4096 << (first & 7), 2 + (first >> 3 & 1));
        if (first >> 4 & 1)
                take_subscriptions(&shape->rig);
        memcpy(shape->streams, shape->rig.reader.snapshot->cpus[0].streams, sizeof(shape->streams));
        memcpy(&shape->made, &shape->rig, sizeof(shape->made));
        return shape;
}

static Rig *shape_take(uint8_t first) {
        Shape *shape = shapes[first & 31];
        Rig *rig;

        if (!shape)
                shape = shapes[first & 31] = shape_make(first);
        gather_batches(shape);
        rig = &shape->rig;
        memcpy(rig, &shape->made, sizeof(*rig)); /* its queues are empty by their indexes */
        rig->reader.free.head = rig->reader.free.tail = 0;
        for (size_t i = 0; i < shape->n_batches; i++) {
                batch_reset(shape->batches[i], 0);
                shape->batches[i]->due = UINT64_MAX;
                queue_push(&rig->reader.free, shape->batches[i]);
        }
        memcpy(rig->reader.snapshot->cpus[0].streams, shape->streams, sizeof(shape->streams));
        for (size_t i = 0; i < RIG_EVENTS; i++)
                memset(rig_counters(rig, i), 0, sizeof(EventCounters));
        memset(rig->comms.buckets, 0, ((size_t)rig->comms.mask + 1) * sizeof(CommBucket));
        memset(rig->memory, 0, (size_t)sysconf(_SC_PAGESIZE) + rig->size);
        comm_table_set(&rig->comms, 7, 1, "seven");
        return rig;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        const uint8_t *end = bytes + length;
        uint64_t budget = BUDGET;
        Rig *rig;

        if (length < 1)
                return 0;
        rig = shape_take(bytes[0]);
        bytes++;
        for (unsigned round = 0; round < ROUNDS && end - bytes >= 11 && budget > 0; round++) {
                uint8_t flags = bytes[0];
                uint64_t jump, written;
                uint16_t n;

                memcpy(&jump, bytes + 1, sizeof(jump));
                memcpy(&n, bytes + 9, sizeof(n));
                bytes += 11;
                if (n > end - bytes)
                        n = (uint16_t)(end - bytes);
                written = write_bytes(rig, flags, bytes, n, budget);
                budget -= written < budget ? written : budget;
                rig->page->data_head += jump ? jump : written;
                bytes += n;
                drain(rig, flags & 1);
        }
        drain(rig, false);
        take_batches(rig);
        rig_check_sums(rig);
        return 0;
}
