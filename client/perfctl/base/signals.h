/* For verbs that run until they are told to end: signals as something to poll. The program has one set of them. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/*
 * From now on SIGINT and SIGTERM ask for an end, and the second of them ends the program at once. SIGHUP asks for an end, too, unless it was
 * ignored, and is never the second. children: SIGCHLD is told too. May be called again. 0, or an exit status after a message.
 */
int signals_catch(const Perfctl *p, bool children);
/* Readable when there is something to take. */
int signals_fd(void);
/* What came since the last time. */
typedef struct Signals {
        bool end;
        bool is_for_all; /* the end: the children were told too */
        bool child;
} Signals;
Signals signals_take(void);
/* SIGWINCH makes the fd readable too: nothing of it is to be taken. 0, or an exit status after a message. */
int signals_catch_resize(const Perfctl *p);
/* Called before a second signal ends the program, in its handler: only what signal-safety(7) allows; NULL: nothing is. */
void signals_set_last(void (*last)(void));
