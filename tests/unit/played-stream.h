/* For tests of the client: packets of a small stream, with one field of each shape. */
#pragma once

#include "tests/unit/played-daemon.h"

#define PLAYED_EVENT 7
#define PLAYED_N_FIELDS 6

typedef struct PlayedDescriptor {
        Perfd__V1__EventDescriptor message;
        Perfd__V1__FieldDescriptor fields[PLAYED_N_FIELDS], *field_list[PLAYED_N_FIELDS];
        Perfd__V1__FieldValue values[5], *state_values[2], *flag_values[3];
} PlayedDescriptor;

static inline void play_value(Perfd__V1__FieldValue *v, uint64_t value, const char *name) {
        perfd__v1__field_value__init(v);
        v->value = value;
        v->name = (char *)name;
}

/* ret = -1 "state", args = array of 2, flags, list = dynamic array, name = text, blob = bytes */
static inline void play_descriptor_init(PlayedDescriptor *d, bool dynamic) {
        static const struct {
                const char *name, *type;
                Perfd__V1__FieldKind kind;
                uint32_t size, count;
        } fields[PLAYED_N_FIELDS] = {
                { "state", "int state", PERFD__V1__FIELD_KIND__FIELD_KIND_SIGNED, 4, 1 },
                { "args", "unsigned long args[2]", PERFD__V1__FIELD_KIND__FIELD_KIND_UNSIGNED, 8, 2 },
                { "name", "char name[16]", PERFD__V1__FIELD_KIND__FIELD_KIND_TEXT, 1, 16 },
                { "list", "__data_loc u16[] list", PERFD__V1__FIELD_KIND__FIELD_KIND_UNSIGNED, 2, 0 },
                { "flags", "u32 flags", PERFD__V1__FIELD_KIND__FIELD_KIND_UNSIGNED, 4, 1 },
                { "blob", "struct s blob", PERFD__V1__FIELD_KIND__FIELD_KIND_BYTES, 1, 4 },
        };

        perfd__v1__event_descriptor__init(&d->message);
        d->message.id = PLAYED_EVENT;
        d->message.name = (char *)"mine";
        d->message.event = (char *)"group:event";
        for (size_t i = 0, n = 0; i < PLAYED_N_FIELDS; i++) {
                Perfd__V1__FieldDescriptor *f = &d->fields[i];

                perfd__v1__field_descriptor__init(f);
                f->name = (char *)fields[i].name;
                f->type = (char *)fields[i].type;
                f->kind = fields[i].kind;
                f->size = fields[i].size;
                f->count = fields[i].count;
                if (i != 3 || dynamic)
                        d->field_list[n++] = f;
                d->message.n_fields = n;
        }
        d->message.fields = d->field_list;
        play_value(&d->values[0], UINT64_MAX, "GONE");
        play_value(&d->values[1], 1, "HERE");
        play_value(&d->values[2], 1, "RD");
        play_value(&d->values[3], 2, "WR");
        play_value(&d->values[4], 0, "NONE");
        for (int i = 0; i < 2; i++)
                d->state_values[i] = &d->values[i];
        for (int i = 0; i < 3; i++)
                d->flag_values[i] = &d->values[2 + i];
        d->fields[0].values = d->state_values;
        d->fields[0].n_values = 2;
        d->fields[4].values = d->flag_values;
        d->fields[4].n_values = 3;
        d->fields[4].flags = true;
        d->fields[4].delimiter = (char *)"|";
}

static inline ProtobufCBinaryData play_text(const char *bytes, size_t n) {
        return (ProtobufCBinaryData){ .data = (uint8_t *)bytes, .len = n };
}

/* A sample of the dynamic descriptor: list has 3 elements, name is not UTF-8, flags have a bit without a name. */
static inline void play_item_init(Perfd__V1__Item *item, uint64_t time) {
        static uint64_t numbers[] = { UINT64_MAX, 5, UINT64_MAX, 3, 300, 0, 65535, 2 | 64 };
        static uint64_t kernel[] = { 0xffffffff81000000, 0xffffffff81000042 };
        static ProtobufCBinaryData texts[2];

        perfd__v1__item__init(item);
        texts[0] = play_text("a\xff\"b", 4);
        texts[1] = play_text("\0\1\2\xfe", 4);
        item->time = time;
        item->event = PLAYED_EVENT;
        item->cpu = 1;
        item->pid = 10;
        item->tid = 11;
        item->numbers = numbers;
        item->n_numbers = 8;
        item->texts = texts;
        item->n_texts = 2;
        item->kernel_callchain = kernel;
        item->n_kernel_callchain = 2;
}

/* Who did what play_item_init() makes. */
typedef struct PlayedTask {
        Perfd__V1__Task message;
        Perfd__V1__Process process;
} PlayedTask;

static inline void play_task_init(PlayedTask *t) {
        perfd__v1__task__init(&t->message);
        perfd__v1__process__init(&t->process);
        t->message.pid = 10;
        t->message.tid = 11;
        t->message.comm = play_text("a b", 3);
        t->message.since = 90;
        t->message.process = &t->process;
        t->process.executable = play_text("/bin/a", 6);
        t->process.parent = 1;
        t->process.known_uid_case = PERFD__V1__PROCESS__KNOWN_UID_UID;
        t->process.start = 80;
        t->process.cgroup = play_text("/pod/x.service", 14);
        t->process.cgroup_id = 5;
        t->process.runtime = (char *)"docker";
        t->process.container = (char *)"0123456789ab";
        t->process.unit = (char *)"x.service";
}

static inline void play_start(int fd) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        PlayedDescriptor d;
        Perfd__V1__EventDescriptor *events[] = { &d.message };

        PlayedTask task;
        Perfd__V1__Task *tasks[] = { &task.message };

        play_descriptor_init(&d, true);
        play_task_init(&task);
        start.clock = (char *)"monotonic";
        start.wall_offset = -5;
        start.host = (char *)"h";
        start.n_cpus = 2;
        p.sequence = 1;
        p.start = &start;
        p.events = events;
        p.n_events = 1;
        p.tasks = tasks;
        p.n_tasks = 1;
        play_packet(fd, &p);
}

/* n items at times first, first + 1, ... */
static inline void play_items(int fd, uint64_t sequence, uint64_t first, size_t n) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item items[16], *list[16];

        assert(n <= 16);
        for (size_t i = 0; i < n; i++) {
                play_item_init(&items[i], first + i);
                list[i] = &items[i];
        }
        p.sequence = sequence;
        p.items = list;
        p.n_items = n;
        play_packet(fd, &p);
}

static inline void play_gap(int fd, uint64_t first, uint64_t last, uint64_t sequence) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__GapEvent event = PERFD__V1__GAP_EVENT__INIT, *events[] = { &event };

        event.event = PLAYED_EVENT;
        event.items = 20;
        gap.reason = (char *)"outbox";
        gap.first_sequence = first;
        gap.last_sequence = last;
        gap.items = 20;
        gap.from = 200;
        gap.to = 300;
        gap.events = events;
        gap.n_events = 1;
        p.sequence = sequence;
        p.gap = gaps;
        p.n_gap = 1;
        play_packet(fd, &p);
}

/* The closing ledger: `sent` to us, and one lost; `wrong` is added to what the event is said to have occurred. */
/* Of a stream in whose time `lost` more were lost in the ring, and that `dropped` did not reach; one was lost before. */
static inline void play_end_lost_for(int fd, const char *reason, uint64_t sequence, uint64_t sent, uint64_t wrong, uint64_t n_lost,
                                     uint64_t n_dropped) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamEnd end = PERFD__V1__STREAM_END__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;
        Perfd__V1__Count lost = PERFD__V1__COUNT__INIT, *counts[] = { &lost };
        Perfd__V1__Count lost_since = PERFD__V1__COUNT__INIT, *counts_since[] = { &lost_since };
        Perfd__V1__Count outbox = PERFD__V1__COUNT__INIT, *dropped[] = { &outbox };
        Perfd__V1__LedgerSince since = PERFD__V1__LEDGER_SINCE__INIT;
        Perfd__V1__EventLedger event = PERFD__V1__EVENT_LEDGER__INIT, *events[] = { &event };
        Perfd__V1__RingLedger ring = PERFD__V1__RING_LEDGER__INIT, *rings[] = { &ring };
        Perfd__V1__Count side_lost = PERFD__V1__COUNT__INIT, *side_counts[] = { &side_lost };
        Perfd__V1__Count side_since = PERFD__V1__COUNT__INIT, *side_counts_since[] = { &side_since };
        Perfd__V1__SubscriberLedger own = PERFD__V1__SUBSCRIBER_LEDGER__INIT, *subscribers[] = { &own };

        lost.reason = lost_since.reason = (char *)reason;
        lost.count = 1 + n_lost;
        lost_since.count = n_lost;
        since.occurred = sent + n_dropped + n_lost;
        since.delivered = sent + n_dropped;
        since.lost = counts_since;
        since.n_lost = 1;
        outbox.reason = (char *)"outbox";
        outbox.count = n_dropped;
        event.id = PLAYED_EVENT;
        event.name = (char *)"mine";
        event.cpu = 1;
        event.occurred = sent + n_dropped + 1 + n_lost + wrong;
        event.delivered = sent + n_dropped;
        event.since = &since;
        event.lost = counts;
        event.n_lost = 1;
        event.balanced = event.exact = true;
        event.count = event.occurred - wrong;
        ring.cpu = 1;
        ring.records = ring.samples = sent;
        side_lost.reason = side_since.reason = (char *)"kernel_ring";
        side_lost.count = 9; /* before the stream */
        ring.lost = side_counts;
        ring.lost_since = side_counts_since;
        ring.n_lost = ring.n_lost_since = 1;
        ring.balanced = true;
        own.id = 3;
        own.peer = (char *)"me";
        own.matched = sent + n_dropped;
        own.sent = sent;
        own.dropped = dropped;
        own.n_dropped = n_dropped > 0;
        own.balanced = true;
        own.order = (char *)"time";
        ledger.loss_exact = true;
        ledger.events = events;
        ledger.rings = rings;
        ledger.subscribers = subscribers;
        ledger.n_events = ledger.n_rings = ledger.n_subscribers = 1;
        end.reason = (char *)"stopped";
        end.ledger = &ledger;
        p.sequence = sequence;
        p.end = &end;
        play_packet(fd, &p);
}

static inline void play_end_lost(int fd, uint64_t sequence, uint64_t sent, uint64_t wrong, uint64_t n_lost, uint64_t n_dropped) {
        play_end_lost_for(fd, "kernel_ring", sequence, sent, wrong, n_lost, n_dropped);
}

static inline void play_end(int fd, uint64_t sequence, uint64_t sent, uint64_t wrong) {
        play_end_lost(fd, sequence, sent, wrong, 0, 0);
}
