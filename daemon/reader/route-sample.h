/*
 * For readers, and for main where clients emit: a sample becomes items in a batch, one for each encoding that somebody wants.
 * Tables are prepared by main before it publishes them.
 */
#pragma once

#include "daemon/model/batch.h"
#include "daemon/model/record.h"
#include "daemon/model/snapshot.h"

enum {
        ROUTE_E_NO_ROOM = 1, /* the batch is full */
};

/* How far a sample has come; begins as { 0 }. */
typedef struct RouteCursor {
        size_t encoding, route; /* indexes into the table of what is next */
        bool is_wanted;         /* there is an item of it already */
} RouteCursor;

/* Of a table that has its routes. is_emitted: of an external event, whose samples all come by route_sample(). -ENOMEM */
int route_table_prepare(RouteTable *t, bool is_emitted);
/* Whether anybody wants it, as far as a reader can know. */
bool route_wants(const RouteTable *t, const Record *record);
/*
 * Appends an item for each encoding from `at` on, with the process conditions that the dispatcher decides. record->comm is the
 * name that predicates compare. ROUTE_E_NO_ROOM: items before `at` were appended; the caller takes them back, or goes on from
 * `at` in another batch.
 */
int route_sample(Batch *b, const RouteTable *t, const Record *record, RouteCursor *at);
