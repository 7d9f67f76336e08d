/*
 * What a hostile daemon can send on a stream: frames as they come, through the public interface of libperfd, every item
 * looked at from all sides. The greeting and the yes to the subscription are played before.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/perfd.h"
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

static perfd_client *subscribe(int fds[2], uint64_t *items) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        perfd_client *client = perfd_client_new("fuzz");
        int r;

        callbacks.item = on_item;
        callbacks.gap = on_gap;
        callbacks.end = on_end;
        play_hello(fds[1], 1);
        play_ok(fds[1], 2);
        r = perfd_client_connect_fd(client, fds[0]);
        assert(r == 0);
        r = perfd_subscribe(client, &s, &callbacks, items);
        assert(r == 0);
        return client;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
        perfd_client *client;
        uint64_t items = 0;
        int fds[2], r;

        r = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
        assert(r == 0);
        client = subscribe(fds, &items);
        play_bytes(fds[1], bytes, n < INPUT_MAX ? n : INPUT_MAX);
        shutdown(fds[1], SHUT_WR);
        do
                r = perfd_client_process(client);
        while (r == 0);
        assert(r == PERFD_E_ENDED || r == PERFD_E_CLOSED || r == PERFD_E_PROTOCOL);
        perfd_client_free(client);
        close(fds[1]);
        return 0;
}
