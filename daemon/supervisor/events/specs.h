/* From messages to specs and back. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"
#include "proto/perfd.pb-c.h"

/*
 * What a client asks for as a spec, into a null image; on failure the caller's to deinit. Refused: what
 * contradicts itself. With 0, a text in `e` is worth a note: it names a CPU that is offline, or one twice. And back, into a new message, which is the caller's also when memory runs out half way.
 */
int spec_from_message(Events *s, const Perfd__V1__EventSpec *m, EventSpec *to, Explanation *e);
/* A filter alone; "" and NULL leave *to. */
int filter_from_message(const char *text, char **to, Explanation *e);
/* Period and frequency of what is set, 0 if not. */
int rate_check(uint64_t period, uint64_t frequency, Explanation *e);
int spec_message(const EventSpec *from, Perfd__V1__EventSpec **ret);
/* The same, to be made a spec again later: of a target it has only the name, and means what the configuration says of it then. */
int spec_message_to_keep(const EventSpec *from, Perfd__V1__EventSpec **ret);
/* Copies for messages and specs: NULL and 0 stay so. -ENOMEM. */
int string_set(char **to, const char *from);
int numbers_set(uint32_t **to, size_t *ret_n, const uint32_t *from, size_t n);
