/* Streams behind a reload of access.rules. Main thread only. */
#pragma once

#include "daemon/supervisor/streams/streams.h"

/*
 * Behind a reload: other rules hold. Streams that they do not grant as they are end with the reason "not-granted"; what a stream
 * may have is never less than it asked for, and never more than it was granted. Negative: fatal.
 */
int streams_change_access(Streams *s, Config *c);
