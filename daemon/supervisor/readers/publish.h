/* For the supervisor: what all readers are told, and main waits until they have done it. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/snapshot.h"
#include "daemon/reader/reader.h"
#include "daemon/supervisor/readers/readers.h"

/*
 * Posts a mail to every reader that answers, and waits until all have followed it; who does not in time is
 * stalled then. Each may get one of its own, by slot; what they borrow is free again afterwards, but for a ring. -ENOMEM
 */
int supervisor_order(Readers *s, ReaderCommandKind kind, Snapshot *snapshot);
int supervisor_order_each(Readers *s, const ReaderCommand *each);
bool reader_has_answered(const Readers *s, uint32_t slot);

/* Makes every reader work with what is registered now, and returns when all do. -ENOMEM: nothing changed. */
int supervisor_publish(Readers *s);
int supervisor_publish_at_cut(Readers *s); /* the same, with a cut just where each reader goes over to the new one */

/* Every event's cut, of all CPUs and of clients, with the next number. -ENOMEM */
int supervisor_cut(Readers *s);
/* The same of those who answer within a moment; of all others what was known before. One that has not for long is stalled. */
int supervisor_cut_at_once(Readers *s);
