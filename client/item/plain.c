/* Most samples have a time, a task and the fields of their event, and no more: those are shown by one call. */
#include <errno.h>

#include "client/item/decode.h"
#include "proto/item-fields.h"

#define PART(field) ((uint64_t)1 << ((field) - ITEM_READ_VALUES))

/* Of the parts that few samples have, ids alone. */
static bool has_only_ids(struct perfd_item *item, perfd_plain_sample *ret) {
        const ItemParts *parts = &item_with_parts(item)->parts;

        if ((parts->has & ~(PART(ITEM_SAMPLE_ID) | PART(ITEM_STREAM_ID))) != 0 || item->faults.n > 0)
                return false;
        ret->ip = item->ip;
        ret->address = item->address;
        ret->period = item->period;
        ret->sample_id = (parts->has & PART(ITEM_SAMPLE_ID)) != 0 ? parts->id : 0;
        ret->stream_id = (parts->has & PART(ITEM_STREAM_ID)) != 0 ? parts->stream_id : 0;
        ret->has_callchain = item->kernel_callchain.n > 0 || item->user_callchain.n > 0;
        return true;
}

bool perfd_item_plain(const perfd_item *asked, perfd_plain_sample *ret) {
        struct perfd_item *item = item_indexed(asked);
        const Descriptor *d = item->descriptor;

        if (item->record != PERFD_SAMPLE || !d || d->dynamic || (!item->places && d->event.n_fields > 0))
                return false;
        ret->ip = ret->address = ret->period = ret->sample_id = ret->stream_id = 0;
        ret->has_callchain = false;
        if (item->has_rest && !has_only_ids(item, ret))
                return false;
        if (numbers_settle(&item->numbers) < 0) {
                item_fail(item, -ENOMEM);
                return false;
        }
        ret->event = &d->event;
        ret->time = item->time;
        ret->cpu = item->cpu;
        ret->pid = item->pid;
        ret->tid = item->tid;
        ret->comm = perfd_item_comm(item);
        ret->numbers = item->numbers.list;
        ret->texts = item->texts;
        return true;
}
