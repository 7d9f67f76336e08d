/*
 * Any bytes as the content of a ring, and any head, several times in a row: a drain ends, reads nothing outside the
 * ring, and every record that it took is counted once.
 *
 *     | ring size, batches, few subscriptions (1) | rounds: flags (1) | how far the head moves (8) | n (2) | n bytes |
 *
 *     flags    | 7 6 5 4: words behind the head to write to | 3 2 1: write 2^x times | 0: keep the batches |
 *
 * A head that moves by 0 moves by what was written. Without its batches the reader starves, and asks for its horizon.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/perfd.pb-c.h"
#include "tests/unit/reader-rig.h"

#define ROUNDS 64

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
static uint64_t write_bytes(Rig *rig, uint8_t flags, const uint8_t *bytes, size_t n) {
        uint64_t begin = rig->page->data_head + (uint64_t)(flags >> 4) * 8, at = begin;

        for (unsigned times = 1u << (flags >> 1 & 7); times > 0 && at - begin + n <= rig->size; times--)
                for (size_t i = 0; i < n; i++)
                        rig->data[at++ & (rig->size - 1)] = bytes[i];
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
                (void)reader_horizon(&rig->reader, head);
}

/* Two streams that speak, with one subscription each, in two encodings: for runs and mixtures of the plainest kind. */
static void take_subscriptions(Rig *rig) {
        SnapshotStream *streams = (SnapshotStream *)rig->reader.snapshot->cpus[0].streams;

        for (size_t i = 0; i < 2; i++) {
                streams[i].muted = false;
                streams[i].is_common = streams[i].is_single = true;
                streams[i].only = streams[i].of->routes[i == 0 ? 0 : streams[i].of->n_routes - 1];
                streams[i].routes = &streams[i].only;
                streams[i].n_routes = 1;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        const uint8_t *end = bytes + length;
        Rig rig;

        if (length < 1)
                return 0;
        rig_init(&rig, (size_t)4096 << (bytes[0] & 7), 2 + (bytes[0] >> 3 & 1));
        if (bytes[0] >> 4 & 1)
                take_subscriptions(&rig);
        comm_table_set(&rig.comms, 7, 1, "seven");
        bytes++;
        for (unsigned round = 0; round < ROUNDS && end - bytes >= 11; round++) {
                uint8_t flags = bytes[0];
                uint64_t jump, written;
                uint16_t n;

                memcpy(&jump, bytes + 1, sizeof(jump));
                memcpy(&n, bytes + 9, sizeof(n));
                bytes += 11;
                if (n > end - bytes)
                        n = (uint16_t)(end - bytes);
                written = write_bytes(&rig, flags, bytes, n);
                rig.page->data_head += jump ? jump : written;
                bytes += n;
                drain(&rig, flags & 1);
        }
        drain(&rig, false);
        take_batches(&rig);
        rig_check_sums(&rig);
        rig_deinit(&rig);
        return 0;
}
