/* Side records are rare beside samples, but a host that forks a lot sends many: read directly too. */
#include "client/record.h"

#include "proto/item-fields.h"

static void comm_set(perfd_comm_record *r, const WireField *f) {
        switch (f->key) {
        case WIRE_KEY(1, WIRE_VARINT):
                r->pid = (uint32_t)f->number;
                break;
        case WIRE_KEY(2, WIRE_VARINT):
                r->tid = (uint32_t)f->number;
                break;
        case WIRE_KEY(3, WIRE_BYTES):
                r->comm = wire_text(f);
                break;
        case WIRE_KEY(4, WIRE_VARINT):
                r->exec = f->number != 0;
                break;
        }
}

static void task_set(perfd_task_record *r, const WireField *f) {
        switch (f->key) {
        case WIRE_KEY(1, WIRE_VARINT):
                r->pid = (uint32_t)f->number;
                break;
        case WIRE_KEY(2, WIRE_VARINT):
                r->ppid = (uint32_t)f->number;
                break;
        case WIRE_KEY(3, WIRE_VARINT):
                r->tid = (uint32_t)f->number;
                break;
        case WIRE_KEY(4, WIRE_VARINT):
                r->ptid = (uint32_t)f->number;
                break;
        }
}

/* A table in the shape of a switch: one case for each field of Mmap2Record. */
static void mmap2_set(perfd_mmap2_record *r, const WireField *f) {
        switch (f->key) {
        case WIRE_KEY(1, WIRE_VARINT):
                r->pid = (uint32_t)f->number;
                break;
        case WIRE_KEY(2, WIRE_VARINT):
                r->tid = (uint32_t)f->number;
                break;
        case WIRE_KEY(3, WIRE_VARINT):
                r->addr = f->number;
                break;
        case WIRE_KEY(4, WIRE_VARINT):
                r->len = f->number;
                break;
        case WIRE_KEY(5, WIRE_VARINT):
                r->pgoff = f->number;
                break;
        case WIRE_KEY(6, WIRE_VARINT):
                r->maj = (uint32_t)f->number;
                break;
        case WIRE_KEY(7, WIRE_VARINT):
                r->min = (uint32_t)f->number;
                break;
        case WIRE_KEY(8, WIRE_VARINT):
                r->ino = f->number;
                break;
        case WIRE_KEY(9, WIRE_VARINT):
                r->ino_generation = f->number;
                break;
        case WIRE_KEY(10, WIRE_BYTES):
                r->build_id = wire_text(f);
                break;
        case WIRE_KEY(11, WIRE_VARINT):
                r->prot = (uint32_t)f->number;
                break;
        case WIRE_KEY(12, WIRE_VARINT):
                r->flags = (uint32_t)f->number;
                break;
        case WIRE_KEY(13, WIRE_BYTES):
                r->filename = wire_text(f);
                break;
        }
}

int record_decode(struct perfd_item *item, const WireField *field) {
        uint32_t number = field->key >> 3;
        Wire w;
        WireField f = { .key = 0 };

        if (number < ITEM_COMM_RECORD || number > ITEM_UNTHROTTLE || (field->key & 7) != WIRE_BYTES)
                return 0;
        item->record = (perfd_record)(PERFD_COMM + (number - ITEM_COMM_RECORD)); /* numbered in the same order */
        switch (item->record) {
        case PERFD_COMM:
                item->comm_record = (perfd_comm_record){ .comm = { .bytes = "" } };
                break;
        case PERFD_MMAP2:
                item->mmap2 = (perfd_mmap2_record){ .build_id = { .bytes = "" }, .filename = { .bytes = "" } };
                break;
        default:
                item->task = (perfd_task_record){ 0 };
                item->number = 0;
        }

        w = wire_of(field->bytes, field->length);
        while (wire_next(&w, &f)) {
                switch (item->record) {
                case PERFD_COMM:
                        comm_set(&item->comm_record, &f);
                        break;
                case PERFD_FORK:
                case PERFD_EXIT:
                        task_set(&item->task, &f);
                        break;
                case PERFD_MMAP2:
                        mmap2_set(&item->mmap2, &f);
                        break;
                default:
                        if (f.key == WIRE_KEY(1, WIRE_VARINT))
                                item->number = f.number;
                }
        }
        return w.malformed ? PERFD_E_PROTOCOL : 0;
}
