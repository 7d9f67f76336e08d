/*
 * What a process of several hosts (hosts.h) says to its parent on stdout: around each item that it prints, so that it can be merged with
 * the others', and of its stream, so that it can be connected again and its sum be shown.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

#define ITEM_BEGIN '\x1e' /* no line of an item begins with these: text and JSON escape them */
#define ITEM_END '\x1f'
#define ITEM_NOTE '\x1d' /* a word and what belongs to it */

#define NOTE_START "start"     /* the stream has begun */
#define NOTE_WALL "wall"       /* WALL: it was there at this time, ns since 1970 */
#define NOTE_END "end"         /* REASON EXACT BALANCED [LOSS COUNT]...: the daemon has ended it, with this closing ledger */
#define NOTE_SUM "sum"         /* PRINTED RECEIVED MISSED [REASON]: of items, as far as it came, and of its last gap */
#define NOTE_PASSING "passing" /* WHY: it fails for something that may pass */

/* What is put between both has this wall time, ns since 1970, which is wrong by `error` at most; UINT64_MAX: nobody knows. */
void host_item_begin(Perfctl *p, uint64_t wall, uint64_t error);
void host_item_end(Perfctl *p);

/* These do nothing where there is one host. */
void host_note(Perfctl *p, const char *word, const char *format, ...) __attribute__((format(printf, 3, 4)));
void host_note_end(Perfctl *p, const perfd_end *end);
