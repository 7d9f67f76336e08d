/* Transactions on running events. Each is done whole or, refused, not at all. Main thread only. */
#pragma once

#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/supervisor.h"

/*
 * What is traced. Each call is done whole or not at all. Specs move into the registrations on
 * success. ret_refs: those that were changed, in malloc'ed memory.
 */
/* How long they stay, if not until they are removed. */
typedef struct AddOptions {
        uint64_t owner;  /* id of the connection with which they end; 0: none */
        bool keep;       /* over restarts */
        bool is_written; /* they come from there, or from the configuration: nobody waits for an answer */
} AddOptions;
int supervisor_add(Supervisor *s, EventSpec *specs, size_t n, const AddOptions *adding, EventRefs *ret_refs, Explanation *e);
int supervisor_remove(Supervisor *s, char *const *names, size_t n, EventRefs *ret_refs, Explanation *e);
int supervisor_enable(Supervisor *s, char *const *names, size_t n, bool on, EventRefs *ret_refs, Explanation *e);
/* Control.gone: its request waits no longer, and the events that end with it are to be removed. */
void supervisor_on_connection_gone(void *userdata, uint64_t id);
/* A list that is resolved and opened, of names that nobody has. It moves; refused: it is closed and freed. */
int supervisor_register(Supervisor *s, Registration *list, size_t n, Explanation *e);
/* Takes it out again, the last of what is registered, and frees it. Negative */
int supervisor_unregister(Supervisor *s, Registration *list, size_t n);
/* Nothing of this can be refused: all are disabled, read to their end by every reader, and freed. */
int supervisor_remove_selected(Supervisor *s, Registration *const *selected, size_t n, Explanation *e);

/* For the end: nothing fires any more. */
int supervisor_disable_all(Supervisor *s);
/* supervisor/changes/replace.c */
int supervisor_set_filter(Supervisor *s, const char *name, const char *filter, Explanation *e);
/* Samples each `period` occurrences, or `frequency` times a second: one of both is not 0. */
int supervisor_set_period(Supervisor *s, const char *name, uint64_t period, uint64_t frequency, Explanation *e);

/*
 * supervisor/changes/rings.c: rings of another size on all CPUs; no sample is lost or doubled. Refused: as before. A failure of the
 * kernel in the middle is fatal: negative.
 */
int supervisor_resize_rings(Supervisor *s, size_t size, Explanation *e);
/* supervisor/changes/hotplug.c: CPUs that come and go from now on. Where the kernel does not tell it is said on the log. */
int supervisor_follow_cpus(Supervisor *s);
/* Of a CPU that went while its reader did not answer, which it does now. */
int supervisor_end_reader(Supervisor *s, uint32_t slot);

/* supervisor/changes/follow.c: from now on the events of a registered list follow what their globs, containers and units name. */
int supervisor_follow_cgroups(Supervisor *s, Registration *list, Explanation *e);
/* One of them goes: its names are watched no longer, unless another event has them too. */
void supervisor_unfollow_event(Supervisor *s, const Registration *r);
void supervisor_unfollow_cgroups(Supervisor *s);
