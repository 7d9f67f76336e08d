/* For the completion: what is no name of an event. Nothing here fails: what cannot be read is not offered. */
#pragma once

#include "client/perfctl/perfctl.h"
#include "client/perfctl/verb.h"

/* `prefix` and `candidate` together, if they begin as the word does. */
void complete_offer(Perfctl *p, const char *word, const char *prefix, const char *candidate);

/* complete-places.c: a file behind the first n bytes of the word, which are "uprobe:"; programs, libraries and folders. */
void complete_path(Perfctl *p, const char *word, size_t n);
/* What of this kind the hierarchy of cgroups has now: WORDS_CGROUPS a level at a time, WORDS_UNITS and WORDS_CONTAINERS. */
void complete_places(Perfctl *p, const char *word, Words words);

/*
 * complete-fields.c: the name at the end of an expression, from the fields of these events, as they run or as the kernel offers
 * them; with WORDS_FIELDS also what every sample has. What is in double quotes is no name.
 */
void complete_fields(Perfctl *p, const char *word, Words words, const char *const *events, size_t n_events);
