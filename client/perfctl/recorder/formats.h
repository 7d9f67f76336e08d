/*
 * For the recorder: by which numbers the kernel of the daemon knows its events, and the texts of their formats, of the daemon itself: tracefs here is
 * that of another host perhaps, or not for this user, and only the daemon knows its probes.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

typedef struct Formats {
        Perfctl p; /* for events that begin later: with a client of its own, since the other one has a stream by then */
        perfd_result **results; /* of requests, which have all texts */
        size_t n;
} Formats;

/*
 * On a client that is no stream: those of events that are not known yet. What has ended meanwhile, or is not granted, stays unknown. 0, or an exit
 * status after a message.
 */
int formats_ask(Formats *f, const Perfctl *p, const uint32_t *ids, size_t n);
/* Of one that begins while there is a stream, by a second connection. */
int formats_ask_late(Formats *f, const Perfctl *p, uint32_t id);
/* NULL: it is not known. As long as `f` lives. */
const perfd_event_format *formats_find(const Formats *f, uint32_t id);
/* What was said of their host, with the headers of tracefs if one of them is a tracepoint; NULL: nothing. */
const perfd_format_host *formats_host(const Formats *f);
void formats_deinit(Formats *f);
