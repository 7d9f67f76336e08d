/* For the supervisor: what all readers are told, and main waits until they have done it. Main thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/snapshot.h"
#include "daemon/reader/reader.h"
#include "daemon/supervisor/readers/readers.h"

/*
 * Posts a command to every reader that answers, and waits until all have followed it; who does not in time is
 * stalled then. Each may get one of its own, by slot; what they borrow is free again afterwards, but for a ring. -ENOMEM
 */
int readers_command(Readers *s, ReaderCommandKind kind, Snapshot *snapshot);
int readers_command_each(Readers *s, const ReaderCommand *each);
bool reader_has_answered(const Readers *s, uint32_t slot);

/* Makes every reader work with what is registered now, and returns when all do. -ENOMEM: nothing changed. */
int readers_publish(Readers *s);
/* The same, with a cut just where each reader goes over to the new one. */
int readers_publish_at_cut(Readers *s, CutScope *scope);

/* The cuts of the scope's events, of all CPUs and of clients, with the next number. scope: borrowed; NULL: of all events. -ENOMEM */
int readers_cut(Readers *s, CutScope *scope);
/* The same of those who answer within a moment; of all others what was known before. One that has not for long is stalled. */
int readers_cut_at_once(Readers *s, CutScope *scope);
