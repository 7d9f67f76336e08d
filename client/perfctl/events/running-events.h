/* For verbs that read samples: what runs by a name that is typed, and how it differs from what would be added. */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/perfctl.h"

/* What runs is meant: "@GROUP" and "#ID". */
bool running_is_reference(const char *word);
bool running_is_glob(const char *word);
/* A word, a reference or a glob means this event. */
bool running_selects(const char *word, const perfd_event_row *row);
/* Something that runs is meant, and not only pending. */
bool running_is_any(const char *word, const perfd_result *list);
/*
 * What runs by this name of the kernel is temporary: it is another client's, with his filter and his target, and ends when he likes.
 * So the verb asks for one of its own, which the daemon shares if both are equal.
 */
bool running_is_temporary(const char *word, const perfd_result *list);
/*
 * Which of these words cannot be taken as they are: what does not run, or is temporary, is to be added. False too: the daemon lists
 * not all.
 */
bool running_is_to_add(const EventWords *words, const perfd_result *list);
/*
 * Of what runs and is used: on stderr, that it is disabled, that its targets are gone, or which of its occurrences it leaves out and
 * how to have one's own.
 */
void running_tell(const Perfctl *p, const EventWords *words, const perfd_result *list);
