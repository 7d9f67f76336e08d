/* For the supervisor: what readers are to work with, as supervisor/readers/hooks.h wants it. userdata is the supervisor. Main thread only. */
#pragma once

#include <stdbool.h>

#include "daemon/model/snapshot.h"
#include "daemon/supervisor/streams/streams.h"

int supervisor_build_snapshot(void *userdata, Snapshot **ret);
bool supervisor_changes_over(const void *userdata);
void supervisor_note_published(void *userdata);
