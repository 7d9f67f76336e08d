/*
 * Has files of a spool written to disk, so that they survive a power cut. A thread does, because it can take as long as the disk likes;
 * what is asked for while it is busy is left for the next time.
 */
#pragma once

#include "client/relay/publish/spool.h"

typedef struct SpoolSync SpoolSync;

int spool_sync_start(const Spool *s, SpoolSync **ret);
/* All that is in the spool now. Does not wait. An errno of what was asked for before, once; or 0. */
int spool_sync_request(SpoolSync *y, Spool *s);
/* Takes NULL. Waits for the disk for 3 s at most. */
void spool_sync_stop(SpoolSync *y);
