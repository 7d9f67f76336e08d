/*
 * For encode/: how each item begins. All of it is of fixed width, so that it is stored and not computed, and so are the
 * numbers behind it: an item of an event without texts has the same length each time.
 */
#pragma once

#include "daemon/encode/wire.h"
#include "daemon/model/plan.h"
#include "daemon/model/record.h"
#include "proto/item-fields.h"

/* A text as long as the name of a thread, of which most texts of tracepoints are: TASK_COMM_LEN bytes in place. */
bool encode_is_comm(const PlanField *f);

static inline uint8_t *item_put_head(uint8_t *to, nsec_t time, uint32_t event_id, uint32_t cpu) {
        to = wire_put_fixed64(to, ITEM_TIME, time);
        to = wire_put_fixed32(to, ITEM_EVENT, event_id);
        return wire_put_fixed32(to, ITEM_CPU, cpu);
}

static inline uint8_t *item_put_who(uint8_t *to, const Record *r) {
        to = wire_put_fixed32(to, ITEM_PID, r->pid);
        return wire_put_fixed32(to, ITEM_TID, r->tid);
}
