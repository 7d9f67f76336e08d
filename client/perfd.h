/*
 * libperfd: the client of perfd, the daemon that owns a host's perf events. libperfd(3) explains it with an example. Each
 * header in perfd/ has one subject, and can be included alone; this one has them all.
 *
 * What holds everywhere:
 *  - A function that can fail returns 0, a negative -errno (memory, a socket that breaks in an unforeseen way), or a
 *    positive PERFD_E_*; perfd_client_error() then says more. Outputs (ret_*) are untouched on failure.
 *  - A client and all that comes from it belong to one thread at a time. The caller owns the loop: nothing here starts
 *    a thread, installs a signal handler, writes a log or ends the process.
 *  - Times are nanoseconds of the stream's clock, sizes are bytes. Text that comes from the traced host is perfd_text:
 *    any bytes, with a length and without a terminating zero. Every `const char *` is a C string, never NULL.
 *  - Structures that the library hands out by pointer may grow at their end; those that the caller fills begin with
 *    `size`, which their PERFD_*_INIT sets.
 */
#pragma once

#include "perfd/batch.h"
#include "perfd/client.h"
#include "perfd/configuration.h"
#include "perfd/descriptor.h"
#include "perfd/emit.h"
#include "perfd/error.h"
#include "perfd/events.h"
#include "perfd/field.h"
#include "perfd/fleet.h"
#include "perfd/item.h"
#include "perfd/ledger.h"
#include "perfd/record.h"
#include "perfd/recorded-item.h"
#include "perfd/recorded-sample.h"
#include "perfd/recording-writer.h"
#include "perfd/recording.h"
#include "perfd/relay-status.h"
#include "perfd/result.h"
#include "perfd/sample.h"
#include "perfd/status.h"
#include "perfd/stream.h"
#include "perfd/symbolizer.h"
#include "perfd/task.h"
