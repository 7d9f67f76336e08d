/* For the supervisor: what readers are to work with, as supervisor/readers/hooks.h wants it. userdata is the supervisor. Main thread only. */
#pragma once

#include <stdbool.h>

#include "daemon/model/snapshot.h"
#include "daemon/supervisor/streams/streams.h"

int streams_build_snapshot(void *userdata, Snapshot **ret);
bool streams_changes_over(const void *userdata);
void streams_note_published(void *userdata);
