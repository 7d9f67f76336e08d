/* Between supervisor/streams/subscribe.c and supervisor/streams/notices.c: ends of subscriptions. Main thread only. */
#pragma once

#include "daemon/supervisor/streams/streams.h"

int streams_subscribe(Streams *s, Connection *c, const Perfd__V1__Request *request, Explanation *e);
/* The dispatcher has nothing of this subscriber any more; `number` is its subscription's. Negative: fatal. */
int streams_on_gone(Streams *s, uint64_t id, uint32_t number);
/* Fds that streams hold, for the share of them that clients may have. */
void streams_count_given(Streams *s);
/* Who is subscribed to which events, on which condition. */
void log_subscribed(uint64_t id, const char *peer, const Perfd__V1__SubscribeRequest *q);
