/*
 * Packets that a server takes in no case, because they are longer than its limit: each is a gap with the reason "too-long", which goes
 * with the next packet of its stream, beside what else than items they had: later items need their descriptors. One owner.
 */
#pragma once

#include "client/relay/publish/dropped.h"
#include "client/relay/publish/message.h"

typedef struct RefusedStream RefusedStream;

typedef struct RefusedPackets {
        RefusedStream *first; /* one of each subject that had any */
} RefusedPackets;

void refused_deinit(RefusedPackets *p);
/* Another part of its packet was refused: so is this one. */
bool refused_is_rest(const RefusedPackets *p, const Message *m);
/* It is refused; what is no part of a stream is passed over. -ENOMEM: its gap is lost, and Perfd-Matched alone tells of its items. */
int refused_add(RefusedPackets *p, Message *m);
/* Bytes that the gaps have at most which it would take along as the next one that is sent. */
size_t refused_gaps_size(const RefusedPackets *p, const Message *m);
/* It is sent next: those that were refused before it go with it, as its prefix, unless another one has taken them. -ENOMEM. */
int refused_attach(RefusedPackets *p, Message *m);
/* The message of that number is stored, and what went with it. */
void refused_forget(RefusedPackets *p, uint64_t number);
