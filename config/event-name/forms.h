/*
 * For this folder alone: the forms of a name, each with who claims a text and who parses it, and what the parsers
 * share. A parser fills a null image, which its caller deinits when it fails; its text is 1 to EVENT_NAME_MAX printable
 * ASCII characters without spaces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/event-name/event-name.h"
#include "config/text/words.h"

/* REFUSED_INVALID "bad-event", at text[offset]. */
int event_refuse_at(Explanation *e, const char *text, size_t offset, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* The text up to its first colon is `word`. */
bool event_base_is(const char *text, const char *word);
/* text[from, to) is a whole number, decimal or 0x; false also if it does not fit. */
bool event_number(const char *text, size_t from, size_t to, uint64_t *ret);
/* A copy of text[from, to). -ENOMEM. */
int event_take(const char *text, size_t from, size_t to, char **ret);

/* text[from...] up to its end, one letter or more, of one event. */
int event_modifiers_parse(const char *text, size_t from, EventModifiers *ret, Explanation *e);
/* text[from, to), one letter or more, of a group: S too. */
int event_group_modifiers_parse(const char *text, size_t from, size_t to, EventModifiers *ret, Explanation *e);
/* There is something behind the colon, and all of it could be modifiers. */
bool event_modifiers_claim(const char *letters);
/* Puts those behind a brace on top of a member's own, as perf does. False: more than three p. */
bool event_modifiers_merge(EventModifiers *to, const EventModifiers *more);

/*
 * For each form: claims() is true if only this parser may take the text; parse() fills `ret`. 0; REFUSED_INVALID "bad-event",
 * with the position of the error; -ENOMEM.
 */
bool event_claims_numbered(const char *text);
int event_parse_numbered(const char *text, EventName *ret, Explanation *e);
void event_numbered_near(Nearest *near, const char *word);

bool event_claims_cache(const char *text);
int event_parse_cache(const char *text, EventName *ret, Explanation *e);
/* `buffer` belongs to the caller, and to `near` while it lives. */
void event_cache_near(Nearest *near, const char *word, char buffer[static 64]);

bool event_claims_raw(const char *text);
int event_parse_raw(const char *text, EventName *ret, Explanation *e);
bool event_claims_pmu(const char *text);
int event_parse_pmu(const char *text, EventName *ret, Explanation *e);

bool event_claims_breakpoint(const char *text);
int event_parse_breakpoint(const char *text, EventName *ret, Explanation *e);

bool event_claims_kprobe(const char *text);
int event_parse_kprobe(const char *text, EventName *ret, Explanation *e);
bool event_claims_uprobe(const char *text);
int event_parse_uprobe(const char *text, EventName *ret, Explanation *e);
bool event_claims_usdt(const char *text);
int event_parse_usdt(const char *text, EventName *ret, Explanation *e);
bool event_claims_external(const char *text);
int event_parse_external(const char *text, EventName *ret, Explanation *e);

/* Claims everything that is left. */
int event_parse_tracepoint(const char *text, EventName *ret, Explanation *e);
