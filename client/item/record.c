/*
 * Side records are rare beside samples, but a host that forks a lot sends many: read directly too. What has only
 * numbers and texts is a table; the two that have messages inside read these in a second walk.
 */
#include "client/item/record.h"

#include <errno.h>

#include "client/item/sample-parts.h"
#include "client/wire/message.h"
#include "proto/item-fields.h"

typedef struct perfd_item Item;

static const Member comm[] = {
        NUMBER(Item, comm_record.pid),
        NUMBER(Item, comm_record.tid),
        TEXT(Item, comm_record.comm),
        NUMBER(Item, comm_record.exec),
};
static const Member task[] = {
        NUMBER(Item, task.pid),
        NUMBER(Item, task.ppid),
        NUMBER(Item, task.tid),
        NUMBER(Item, task.ptid),
};
static const Member mmap2[] = {
        NUMBER(Item, mmap2.pid),
        NUMBER(Item, mmap2.tid),
        NUMBER(Item, mmap2.addr),
        NUMBER(Item, mmap2.len),
        NUMBER(Item, mmap2.pgoff),
        NUMBER(Item, mmap2.maj),
        NUMBER(Item, mmap2.min),
        NUMBER(Item, mmap2.ino),
        NUMBER(Item, mmap2.ino_generation),
        TEXT(Item, mmap2.build_id),
        NUMBER(Item, mmap2.prot),
        NUMBER(Item, mmap2.flags),
        TEXT(Item, mmap2.filename),
};
static const Member number[] = { NUMBER(Item, number) };
static const Member switched[] = {
        NUMBER(Item, switch_record.out),
        NUMBER(Item, switch_record.preempted),
        NUMBER(Item, switch_record.cpu_wide),
        NUMBER(Item, switch_record.next_prev_pid),
        NUMBER(Item, switch_record.next_prev_tid),
};
static const Member namespaces[] = {
        NUMBER(Item, namespaces_record.pid),
        NUMBER(Item, namespaces_record.tid),
};
static const Member ksymbol[] = {
        WORD(Item, ksymbol.addr),
        NUMBER(Item, ksymbol.len),
        NUMBER(Item, ksymbol.type),
        NUMBER(Item, ksymbol.flags),
        TEXT(Item, ksymbol.name),
};
static const Member bpf_event[] = {
        NUMBER(Item, bpf_event.type),
        NUMBER(Item, bpf_event.flags),
        NUMBER(Item, bpf_event.id),
        TEXT(Item, bpf_event.tag),
};
static const Member cgroup[] = { NUMBER(Item, cgroup.id), TEXT(Item, cgroup.path) };
static const Member text_poke[] = {
        WORD(Item, text_poke.addr),
        TEXT(Item, text_poke.old_bytes),
        TEXT(Item, text_poke.new_bytes),
};
static const Member aux[] = { NUMBER(Item, aux.offset), NUMBER(Item, aux.size), NUMBER(Item, aux.flags) };
static const Member thread[] = { NUMBER(Item, task.pid), NUMBER(Item, task.tid) };
static const Member unknown[] = {
        NUMBER(Item, unknown.type),
        NUMBER(Item, unknown.misc),
        TEXT(Item, unknown.bytes),
};

typedef struct Members {
        const Member *list;
        size_t n;
} Members;

#define MEMBERS(list) { (list), sizeof(list) / sizeof((list)[0]) }

/* By record: perfd_record counts in the order of the item's fields. */
static const Members records[] = {
        [PERFD_COMM] = MEMBERS(comm),
        [PERFD_FORK] = MEMBERS(task),
        [PERFD_EXIT] = MEMBERS(task),
        [PERFD_MMAP2] = MEMBERS(mmap2),
        [PERFD_LOST] = MEMBERS(number),
        [PERFD_LOST_SAMPLES] = MEMBERS(number),
        [PERFD_THROTTLE] = MEMBERS(number),
        [PERFD_UNTHROTTLE] = MEMBERS(number),
        [PERFD_SWITCH] = MEMBERS(switched),
        [PERFD_NAMESPACES] = MEMBERS(namespaces),
        [PERFD_KSYMBOL] = MEMBERS(ksymbol),
        [PERFD_BPF_EVENT] = MEMBERS(bpf_event),
        [PERFD_CGROUP] = MEMBERS(cgroup),
        [PERFD_TEXT_POKE] = MEMBERS(text_poke),
        [PERFD_AUX] = MEMBERS(aux),
        [PERFD_ITRACE_START] = MEMBERS(thread),
        [PERFD_AUX_OUTPUT_HW_ID] = MEMBERS(number),
        [PERFD_READ] = MEMBERS(thread),
        [PERFD_UNKNOWN] = MEMBERS(unknown),
};

#define RECORD_ITEM(code, number, member, name)                                                                        \
        _Static_assert((int)PERFD_##code == number - ITEM_COMM + 1,                                                    \
                       "give perfd_record of perfd.h PERFD_" #code " at the place of its row");
#include "proto/record.def"

static int add_namespace(Item *item, const WireField *field) {
        static const Member members[] = { NUMBER(perfd_namespace, dev), NUMBER(perfd_namespace, inode) };
        size_t n = item->namespaces_record.n_namespaces;

        if (list_reserve(&item->namespaces, &item->namespaces_room, n, sizeof(*item->namespaces)) < 0)
                return -ENOMEM;
        item->namespaces[n] = (perfd_namespace){ .dev = 0 };
        item->namespaces_record.namespaces = item->namespaces;
        item->namespaces_record.n_namespaces++;
        return MESSAGE_DECODE(field, members, &item->namespaces[n]);
}

/* Field 3 of NamespacesRecord and of ReadRecord. */
static int decode_inner(Item *item, const WireField *field) {
        Wire w = wire_of(field->bytes, field->length);
        WireField f = { .key = 0 };
        int r = 0;

        while (r == 0 && wire_next(&w, &f))
                if (f.key == WIRE_KEY(3, WIRE_BYTES))
                        r = item->record == PERFD_READ ? parts_decode_reads(&item->parts, &f) : add_namespace(item, &f);
        return r;
}

/* The members lie in one union, which begins with zeros whatever the item before was. */
static void clear_record(Item *item) {
        size_t begin = offsetof(Item, comm_record), end = offsetof(Item, namespaces);

        memset((uint8_t *)item + begin, 0, end - begin);
        item->parts.n_reads = 0;
}

int record_decode(struct perfd_item *item, const WireField *field) {
        uint32_t number_of_field = field->key >> 3;
        int r;

        if (number_of_field < ITEM_COMM || number_of_field > ITEM_UNKNOWN || (field->key & 7) != WIRE_BYTES)
                return 0;
        item->record = (perfd_record)(PERFD_COMM + (number_of_field - ITEM_COMM));
        clear_record(item);
        r = message_decode(field, records[item->record].list, records[item->record].n, item);
        if (r == 0 && (item->record == PERFD_READ || item->record == PERFD_NAMESPACES))
                r = decode_inner(item, field);
        return r;
}
