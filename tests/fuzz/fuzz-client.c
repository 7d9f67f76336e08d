/*
 * What a hostile daemon can send on a stream: frames as they come, through the public interface of libperfd, every item
 * looked at from all sides. The greeting and the yes to the subscription are played before. The same frames by a ring in
 * shared memory, in two parts, are the same stream; and so they are by batches, whose arrays and columns say what their items say.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/perfd.h"
#include "proto/stream-ring.h"
#include "tests/unit/played-daemon.h"

#define INPUT_MAX ((size_t)64 << 10) /* more does not fit into a socket that nobody reads yet */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static uint64_t sum; /* of all that was read, so that reading is not optimised away */

static void look_at_text(perfd_text text) {
        for (size_t i = 0; i < text.length; i++)
                sum += (uint8_t)text.bytes[i];
}

static void look_at_chain(const perfd_item *item, perfd_callchain part) {
        const uint64_t *addresses;
        size_t n = perfd_item_callchain(item, part, &addresses);

        for (size_t i = 0; i < n; i++)
                sum += addresses[i];
}

static void look_at_registers(const perfd_registers *r) {
        for (size_t i = 0; r && i < r->n_values; i++)
                sum += r->values[i];
        if (r && perfd_register_name(r->machine, (unsigned)r->mask))
                sum += strlen(perfd_register_name(r->machine, (unsigned)r->mask));
}

static void look_at_task(const perfd_item *item) {
        const perfd_process *p = perfd_item_process(item);

        look_at_text(perfd_item_comm(item));
        if (!p)
                return;
        look_at_text(perfd_item_task(item)->comm);
        look_at_text(p->executable);
        look_at_text(p->cgroup);
        sum += p->uid + strlen(p->container) + strlen(p->runtime) + strlen(p->pod_uid) + strlen(p->unit);
}

static void look_at_parts(const perfd_item *item) {
        const perfd_read_value *values;
        const perfd_branch *branches;
        uint64_t index = 0;
        size_t n = perfd_item_read(item, &values);

        for (size_t i = 0; i < n; i++)
                sum += values[i].value + values[i].enabled + values[i].running + values[i].lost;
        n = perfd_item_branches(item, &branches);
        for (size_t i = 0; i < n; i++)
                sum += branches[i].from + branches[i].counters + branches[i].mispredicted;
        look_at_registers(perfd_item_user_registers(item));
        look_at_registers(perfd_item_interrupt_registers(item));
        look_at_text(perfd_item_user_stack(item));
        look_at_text(perfd_item_aux_bytes(item));
        sum += perfd_item_weight(item) ? perfd_item_weight(item)->full : 0;
        sum += perfd_item_data_source(item) ? perfd_item_data_source(item)->hops : 0;
        sum += perfd_item_transaction(item) ? perfd_item_transaction(item)->abort_code : 0;
        sum += perfd_item_branch_hw_index(item, &index) + index + perfd_item_sample_id(item);
}

static void look_at_record(const perfd_item *item) {
        const perfd_namespaces_record *namespaces = perfd_item_namespaces_record(item);

        for (size_t i = 0; namespaces && i < namespaces->n_namespaces; i++)
                sum += namespaces->namespaces[i].inode;
        if (perfd_item_ksymbol_record(item))
                look_at_text(perfd_item_ksymbol_record(item)->name);
        if (perfd_item_bpf_event_record(item))
                look_at_text(perfd_item_bpf_event_record(item)->tag);
        if (perfd_item_cgroup_record(item))
                look_at_text(perfd_item_cgroup_record(item)->path);
        if (perfd_item_text_poke_record(item)) {
                look_at_text(perfd_item_text_poke_record(item)->old_bytes);
                look_at_text(perfd_item_text_poke_record(item)->new_bytes);
        }
        if (perfd_item_unknown_record(item))
                look_at_text(perfd_item_unknown_record(item)->bytes);
        sum += perfd_item_switch_record(item) ? perfd_item_switch_record(item)->next_prev_pid : 0;
        sum += perfd_item_aux_record(item) ? perfd_item_aux_record(item)->flags : 0;
        sum += perfd_item_hw_id(item);
}

static void on_item(void *userdata, const perfd_item *item) {
        const perfd_comm_record *comm = perfd_item_comm_record(item);
        const perfd_mmap2_record *mmap2 = perfd_item_mmap2_record(item);
        const perfd_event *event = perfd_item_event(item);
        char text[64];
        perfd_value v;
        size_t i;

        for (i = 0; perfd_item_get(item, i, &v); i++) {
                size_t length = perfd_value_render(&v, text, sizeof(text));

                assert(strlen(text) <= length);
                look_at_text(v.text);
                for (size_t k = 0; k < v.count; k++)
                        sum += v.numbers[k];
        }
        assert(i == 0 || i == event->n_fields);
        look_at_task(item);
        look_at_text(perfd_item_raw(item));
        look_at_chain(item, PERFD_CALLCHAIN_KERNEL);
        look_at_chain(item, PERFD_CALLCHAIN_USER);
        if (comm)
                look_at_text(comm->comm);
        if (mmap2) {
                look_at_text(mmap2->filename);
                look_at_text(mmap2->build_id);
        }
        look_at_parts(item);
        look_at_record(item);
        sum += perfd_item_lost(item) + perfd_item_stream_id(item);
        if (perfd_item_task_record(item))
                sum += perfd_item_task_record(item)->ppid;
        ++*(uint64_t *)userdata;
}

static void look_at_column(const perfd_batch *batch, uint32_t event, const perfd_field *f) {
        const perfd_column *column;
        int r = perfd_batch_column(batch, event, f->name, &column);

        if (r != 0) {
                assert(r == PERFD_E_INVALID || r == PERFD_E_PROTOCOL);
                return;
        }
        for (size_t i = 0; i < column->n; i++) {
                assert(column->rows[i] < batch->n && batch->events[column->rows[i]] == event);
                for (size_t k = 0; k < column->count; k++)
                        sum += column->values[i * column->count + k];
        }
}

static void look_at_batch(const perfd_batch *batch, uint64_t *items) {
        size_t n_samples = 0;

        for (size_t i = 0; i < batch->n; i++) {
                const perfd_item *item = perfd_batch_item(batch, batch->items[i]);
                const perfd_event *event = perfd_item_event(item);

                n_samples += batch->records[i] == PERFD_SAMPLE;
                on_item(items, item);
                if (perfd_item_record(item) == PERFD_UNKNOWN) /* it may be wrong */
                        continue;
                assert(perfd_item_record(item) == batch->records[i] && perfd_item_time(item) == batch->times[i]);
                assert(perfd_item_cpu(item) == batch->cpus[i] && perfd_item_pid(item) == batch->pids[i]);
                assert(perfd_item_tid(item) == batch->tids[i] && (!event || event->id == batch->events[i]));
                for (size_t k = 0; event && k < event->n_fields && i < 4; k++)
                        look_at_column(batch, event->id, &event->fields[k]);
        }
        assert(n_samples == batch->n_samples);
}

static int read_batches(perfd_client *client, uint64_t *items) {
        const perfd_batch *batch;
        int r;

        while ((r = perfd_stream_next_batch(client, &batch)) == 0 && batch->n > 0)
                look_at_batch(batch, items);
        return r;
}

static void on_gap(void *userdata, const perfd_gap *gap) {
        for (size_t i = 0; i < gap->n_events; i++)
                sum += strlen(gap->events[i].name) + gap->events[i].items;
}

static void on_end(void *userdata, const perfd_end *end) {
        const perfd_event_ledger *row;

        assert(end->received == *(uint64_t *)userdata);
        for (size_t i = 0; (row = perfd_result_event_ledger(end->ledger, i)); i++)
                sum += strlen(row->name) + row->n_lost;
        if (end->own)
                sum += strlen(end->own->peer);
}

/* The daemon's ends of a ring, made once. */
static struct {
        int fds[STREAM_RING_FDS];
        size_t offset;
        RingDaemonWords *words;
        RingClientWords *theirs;
} ring;

static void *ring_file(int *ret_fd, size_t length) {
        int r;
        void *map;

        *ret_fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        r = ftruncate(*ret_fd, (off_t)length);
        assert(r == 0);
        r = fcntl(*ret_fd, F_ADD_SEALS, F_SEAL_SHRINK);
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
        assert(r == 0 && map != MAP_FAILED);
        return map;
}

static void ring_reset(void) {
        if (!ring.words) {
                ring.offset = (size_t)sysconf(_SC_PAGESIZE);
                ring.words = ring_file(&ring.fds[0], ring.offset + STREAM_RING_MIN);
                ring.theirs = ring_file(&ring.fds[1], ring.offset);
        }
        atomic_store(&ring.words->head, 0);
        atomic_store(&ring.words->waits, 0);
        atomic_store(&ring.theirs->tail, 0);
        atomic_store(&ring.theirs->waits, 1);
}

typedef struct Way {
        bool by_ring, by_batches;
} Way;

static perfd_client *subscribe(int fds[2], uint64_t *items, Way way) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        perfd_client *client = perfd_client_new("fuzz");
        int r;

        callbacks.item = way.by_batches ? NULL : on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        play_hello(fds[1], 1);
        if (way.by_ring) {
                Perfd__V1__StreamRing body = PERFD__V1__STREAM_RING__INIT;

                body.bytes = s.ring_bytes = (uint32_t)STREAM_RING_MIN;
                body.offset = ring.offset;
                play_ring(fds[1], 2, &body, ring.fds, STREAM_RING_FDS);
        } else
                play_ok(fds[1], 2);
        r = perfd_client_connect_fd(client, fds[0]);
        assert(r == 0);
        r = perfd_subscribe(client, &s, &callbacks, items);
        assert(r == 0);
        return client;
}

static int read_on(perfd_client *client, uint64_t *items, Way way) {
        return way.by_batches ? read_batches(client, items) : perfd_client_process(client);
}

/* Up to the `until`th byte, as far as it goes. */
static int play_into_ring(perfd_client *client, const uint8_t *bytes, size_t until, uint64_t *items, Way way) {
        memcpy((uint8_t *)ring.words + ring.offset, bytes, until);
        atomic_store(&ring.words->head, until);
        return read_on(client, items, way);
}

static int run(const uint8_t *bytes, size_t n, Way way, uint64_t *ret_items) {
        perfd_client *client;
        int fds[2], r;

        r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
        assert(r == 0);
        ring_reset();
        *ret_items = 0;
        client = subscribe(fds, ret_items, way);
        if (way.by_ring)
                r = play_into_ring(client, bytes, n > 0 ? bytes[0] % n : 0, ret_items, way);
        else
                play_bytes(fds[1], bytes, n);
        shutdown(fds[1], SHUT_WR);
        while (r == 0)
                r = way.by_ring ? play_into_ring(client, bytes, n, ret_items, way) : read_on(client, ret_items, way);
        assert(r == PERFD_E_ENDED || r == PERFD_E_CLOSED || r == PERFD_E_PROTOCOL || (way.by_batches && r == PERFD_E_STATE));
        perfd_client_free(client);
        close(fds[1]);
        return r;
}

/* What is wrong with an item is found with its batch, before others of it are looked at; or by who asks for a column. */
static void run_by_batches(const uint8_t *bytes, size_t n, bool by_ring, int said, uint64_t items) {
        uint64_t by_batches;
        int r = run(bytes, n, (Way){ .by_ring = by_ring, .by_batches = true }, &by_batches);

        if (said == PERFD_E_PROTOCOL)
                assert(r == PERFD_E_PROTOCOL || r == PERFD_E_STATE);
        else
                assert(r == said && by_batches == items);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
        const bool by_ring = n % 4 != 1;
        uint64_t items, others;
        int said;

        n = n < INPUT_MAX ? n : INPUT_MAX;
        said = run(bytes, n, (Way){ .by_ring = by_ring }, &items);
        run_by_batches(bytes, n, by_ring, said, items);
        /* a connection takes longer than what most inputs send by it: the other way too for one input of four */
        if (n % 4 == 0)
                assert(run(bytes, n, (Way){ .by_ring = false }, &others) == said && others == items);
        return 0;
}
