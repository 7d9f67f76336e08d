/* Transactions on running events. Each is done whole or, refused, not at all. Main thread only. */
#pragma once

#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/resolve/resolve.h"
#include "daemon/supervisor/streams/streams.h"

typedef struct Changes {
        Settings *settings;
        Host *host;
        Operations *operations;
        Readers *readers;
        Events *events;
        Resolver *resolver;
        Subscriptions *subscriptions;
        Ledger *ledger;
        Streams *streams;

        int hotplug_fd;            /* -1: CPUs are not followed */
        CgroupWatch *cgroup_watch; /* NULL: no event follows cgroups */
        char *state_path;          /* of persistent events */
        char *state_unusable;      /* why it must not be written; NULL: it may */
        char *state_unstored;      /* why it is not as the persistent events are; NULL: it is */
        sd_event_source *state_timer; /* runs while it is not; NULL: no loop runs yet */
} Changes;

/* How long events that are added stay, if not until they are removed. */
typedef struct AddOptions {
        uint64_t owner;  /* id of the connection with which they end; 0: none */
        bool is_shared;  /* with owner: one that is equal and temporary is held instead */
        bool keep;       /* over restarts */
        bool is_written; /* they come from there, or from the configuration: nobody waits for an answer */
} AddOptions;
/*
 * Each is done whole or, refused, not at all. Specs move into the registrations on success. ret_refs: what was changed, in
 * malloc'ed memory. e->text, of a success: what is to be said of it, or "".
 */
int changes_add(Changes *s, EventSpec *specs, size_t n, const AddOptions *adding, EventRefs *ret_refs, Explanation *e);
int changes_remove(Changes *s, char *const *names, size_t n, EventRefs *ret_refs, Explanation *e);
int changes_enable(Changes *s, char *const *names, size_t n, bool on, EventRefs *ret_refs, Explanation *e);
/* Control.gone: its request waits no longer, and the events that end with it are to be removed. */
void changes_on_connection_gone(void *userdata, uint64_t id);
/* A list that is resolved and opened, of names that nobody has. It moves; refused: it is closed and freed. */
int changes_register(Changes *s, Registration *list, size_t n, Explanation *e);
/* Takes it out again, the last of what is registered, and frees it. Negative */
int changes_unregister(Changes *s, Registration *list, size_t n);
/* Nothing of this can be refused: all are disabled, read to their end by every reader, and freed. */
int changes_remove_selected(Changes *s, Registration *const *selected, size_t n, Explanation *e);

/* For the end: nothing fires any more. */
int changes_disable_all(Changes *s);
/* supervisor/changes/replace.c; filter: NULL takes it away. */
int changes_set_filter(Changes *s, const char *name, const char *filter, Explanation *e);
/* Samples each `period` occurrences, or `frequency` times a second: one of both is not 0. */
int changes_set_period(Changes *s, const char *name, uint64_t period, uint64_t frequency, Explanation *e);

/*
 * supervisor/changes/rings.c: rings of another size on all CPUs; no sample is lost or delivered twice. Refused: as before. A failure of the
 * kernel in the middle is fatal: negative.
 */
int changes_resize_rings(Changes *s, size_t size, Explanation *e);
/* supervisor/changes/hotplug.c: CPUs that come and go from now on. Where the kernel does not tell it is said on the log. */
int changes_follow_cpus(Changes *s);
/* Of a CPU that went while its reader did not answer, which it does now. */
int changes_end_reader(Changes *s, uint32_t slot);

/* supervisor/changes/follow.c: from now on the events of a registered list follow what their globs, containers and units name. */
int changes_follow_cgroups(Changes *s, Registration *list, Explanation *e);
/* One of them goes: its names are watched no longer, unless another event has them too. */
void changes_unfollow_event(Changes *s, const Registration *r);
void changes_unfollow_cgroups(Changes *s);

/* Changes that no client asks for (ChangeKind); userdata is the Changes. Negative: fatal. */
int changes_on_answers(void *userdata);       /* supervisor/changes/rejoin.c */
int changes_on_hotplug(void *userdata);       /* supervisor/changes/hotplug.c */
int changes_on_cgroups(void *userdata);       /* supervisor/changes/follow.c */
int changes_remove_orphans(void *userdata);   /* supervisor/changes/events.c */
int changes_store_state(void *userdata);      /* supervisor/changes/persistent.c */
