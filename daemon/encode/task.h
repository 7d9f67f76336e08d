/* For the dispatcher: who a thread is, as wire bytes of field `tasks` of perfd.v1.Packet. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/task-table.h"

#define TASK_ENCODED_MAX (2 * TASK_TEXT_MAX + 1024) /* more than any is long */

/* with_process: with what its process is. How long it is, complete with tag and length. */
size_t task_encode(const Task *task, bool with_process, uint8_t to[static TASK_ENCODED_MAX]);
