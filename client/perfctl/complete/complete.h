/* For the completion. Nothing here fails: what cannot be read is not offered. */
#pragma once

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/verb.h"

/* `prefix` and `candidate` together, if they begin as the word does; false: they do not. */
bool complete_offer(Perfctl *p, const char *word, const char *prefix, const char *candidate);

/* events.c: the last event of the list that the word is. */
void complete_events(Perfctl *p, const char *word, Words words);

/* places.c: a file behind the first n bytes of the word, which are "uprobe:"; programs, libraries and folders. */
void complete_path(Perfctl *p, const char *word, size_t n);
/* What of this kind the hierarchy of cgroups has now: WORDS_CGROUPS a level at a time, WORDS_UNITS and WORDS_CONTAINERS. */
void complete_places(Perfctl *p, const char *word, Words words);

/* symbols.c: functions of a file, by its path, its name as a library or in $PATH, behind what stands before them. */
void complete_symbols(Perfctl *p, const char *word, const char *before, const char *file);
/* The same of its static probes, as "provider:name". */
void complete_static_probes(Perfctl *p, const char *word, const char *before, const char *file);

/* tasks.c: the last number of a list: processes that run now, and with WORDS_THREADS each of their threads. */
void complete_tasks(Perfctl *p, const char *word, Words words);

/*
 * fields.c: the name at the end of an expression or a list, from the fields of these events, as they run or as the
 * kernel offers them; with WORDS_FIELDS also what every sample has. What is in double quotes is no name. Behind a name and a
 * blank: what may compare it.
 */
void complete_fields(Perfctl *p, const char *word, Words words, const char *const *events, size_t n_events);
