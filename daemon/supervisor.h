/*
 * The supervisor: owns the configuration, what is traced, every perf fd, and the other threads. Main thread only, all
 * of it; what it shares with other threads are snapshots, mails and counters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "config/config.h"
#include "config/event-name.h"
#include "daemon/base/error.h"
#include "daemon/closer.h"
#include "daemon/control/control.h"
#include "daemon/dispatcher.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/attr.h"
#include "daemon/kernel/tracing.h"
#include "daemon/model/comm-table.h"
#include "daemon/model/snapshot.h"
#include "daemon/reader.h"
#include "daemon/route/match.h"

/* The fds of one event, opened together. */
typedef struct Stream {
        uint32_t slot; /* of its CPU */
        int fd;
        uint64_t id;
} Stream;

typedef struct Opened {
        Stream *streams;
        size_t n;
} Opened;

#define OPENED_NULL ((Opened){ .streams = NULL })

/* An event while it is registered. */
typedef struct Registration {
        struct Registration *next;
        Event *event; /* its spec.filter is main's to change */
        AttrSource source;
        SampleLayout layout;
        Opened opened;  /* what speaks */
        Opened pending; /* muted: the replacement before the switch, what was replaced after it */
        bool enabled;
        bool exclude_self; /* by the reader */
} Registration;

/* What one or more subscribers with the same wishes want: one bit, one program for each event. */
typedef struct SubscriptionRoute {
        Event *event;
        MatchProgram *program; /* NULL: always */
        EncodePlan *encoding;
} SubscriptionRoute;

typedef struct Subscription {
        struct Subscription *next;
        unsigned bit;
        unsigned n_subscribers;
        uint64_t since; /* generation of the first snapshot with it */
        char *key;      /* canonical: equal keys share */
        char **patterns;
        size_t n_patterns;
        Filter *filter;
        Payload payload;
        char **fields;
        size_t n_fields;
        uint32_t records; /* bits of RecordKind */
        SubscriptionRoute *routes;
        size_t n_routes;
} Subscription;

/* What a subscriber was granted, charged to its uid until it is gone. */
typedef struct Admission {
        struct Admission *next;
        uint64_t id;
        uid_t uid;
        size_t queue_bytes;
} Admission;

typedef struct Supervisor {
        sd_event *event;
        Config *config;
        char *config_path; /* NULL: defaults */
        char *runtime_directory; /* overrides the paths of the sockets */
        int ready_fd; /* -1: nobody waits */
        nsec_t started;

        Tracing tracing;
        AttrBase attr;
        uint32_t *cpus; /* by slot */
        size_t n_cpus;
        int *carriers;          /* by slot */
        Opened carrier_streams; /* the same, to be switched; owns none of them */
        CommTable comms;
        Reader *readers; /* by slot */
        Lane *lanes;     /* by slot: of the readers, for the dispatcher */
        size_t n_readers_started;
        Closer closer;
        Dispatcher dispatcher;
        bool dispatcher_started;
        int acknowledge_fd;
        uint64_t sequence; /* of the last mail to readers */
        uint64_t generation; /* of the last published snapshot */
        bool active; /* the carriers are enabled */
        char *self_filter; /* excludes our threads in the kernel's filter language; NULL: the reader does it */

        Registration *registrations;
        size_t n_registrations;
        uint32_t last_event_id;
        Subscription *subscriptions;
        uint64_t used_bits;
        uint64_t last_subscriber_id;
        Admission *admissions; /* of every subscriber */
        size_t n_subscribers;
        Control control;
        bool stopping;
        int exit_code;
        sd_event_source *watchdog;
} Supervisor;

/* supervisor.c: start and stop, one list and its mirror. */
int supervisor_start(Supervisor *s, Explanation *e);
/* Runs until it is told to stop; the exit code. */
int supervisor_run(Supervisor *s);
void supervisor_stop(Supervisor *s);

/* supervisor-config.c */
/* What a configured target means. -ENOMEM. */
int spec_set_target(EventSpec *spec, const ConfigTarget *t);
/* A YAML text against this host: everything is opened once, disabled, and closed. 0, REFUSED_INVALID, negative. */
int supervisor_validate(Supervisor *s, const char *yaml, ConfigMistakes *m);
int supervisor_apply_config(Supervisor *s, Explanation *e);
int supervisor_reload(Supervisor *s, Perfd__V1__ReloadReply *ret, Explanation *e);

/* supervisor-open.c: the fds of one registration, disabled, filtered, in their rings. All or none. */
int supervisor_open(Supervisor *s, const Registration *r, const char *filter, Opened *ret, Explanation *e);
/* By the closer. Disabled, and no reader knows them (any more). */
void opened_close(Supervisor *s, Opened *o);
/*
 * supervisor-switch.c: all of the list, by the readers. Refused: all are disabled; `what` is for the explanation.
 * Negative: memory.
 */
int opened_enable(Supervisor *s, const Opened *const *list, size_t n, const char *what, Explanation *e);
int opened_disable(Supervisor *s, const Opened *const *list, size_t n);
/* Fds that perfd needs on so many CPUs before it traces anything. */
size_t supervisor_own_fds(size_t n_cpus);
size_t supervisor_count_fds(const Supervisor *s);

/* supervisor-publish.c */
/* Makes every reader work with what is registered now, and returns when all do. -ENOMEM: nothing changed. */
int supervisor_publish(Supervisor *s);
/* Posts a mail to every reader and waits until all have followed it. */
int supervisor_order(Supervisor *s, ReaderOrder order, Snapshot *snapshot);
/* The same with a mail of its own for each reader, by slot; what they borrow is free again afterwards. */
int supervisor_order_each(Supervisor *s, const ReaderMail *each);

/*
 * supervisor-events.c: what is traced. Each call is done whole or not at all. Specs move into the registrations on
 * success. ret_refs: those that were changed, in malloc'ed memory.
 */
typedef struct EventRef {
        uint32_t id;
        char *name;
} EventRef;
typedef struct EventRefs {
        EventRef *refs;
        size_t n;
} EventRefs;
void event_refs_deinit(EventRefs *r);
int supervisor_add(Supervisor *s, EventSpec *specs, size_t n, EventRefs *ret_refs, Explanation *e);
int supervisor_remove(Supervisor *s, char *const *names, size_t n, EventRefs *ret_refs, Explanation *e);
int supervisor_enable(Supervisor *s, char *const *names, size_t n, bool on, EventRefs *ret_refs, Explanation *e);
/* Each name selects at least one; in malloc'ed memory, in the order of registration, none twice. */
int supervisor_select(const Supervisor *s, char *const *names, size_t n, Registration ***ret, size_t *ret_n,
                      Explanation *e);
/* supervisor-replace.c */
/* For the end: nothing fires any more. */
int supervisor_disable_all(Supervisor *s);
int supervisor_set_filter(Supervisor *s, const char *name, const char *filter, Explanation *e);
/* Lets `replacement`, opened with `filter` (malloc, moves), speak in the place of what is open. */
int supervisor_refilter(Supervisor *s, Registration *r, Opened *replacement, char *filter, Explanation *e);
Registration *supervisor_find(const Supervisor *s, const char *name);
/* An event or a glob, parsed and looked up: what would be opened for it. supervisor-resolve.c */
int supervisor_resolve(Supervisor *s, EventSpec *spec, Registration **ret_list, Explanation *e);
Registration *registration_free(Supervisor *s, Registration *r);
void registrations_free(Supervisor *s, Registration *list);
/* A list that is resolved and opened, of names that nobody has. It moves; refused: it is closed and freed. */
int supervisor_register(Supervisor *s, Registration *list, size_t n, Explanation *e);

/* supervisor-subscription.c */
int subscription_parse(const Perfd__V1__SubscribeRequest *q, Subscription **ret, Explanation *e);
/* Each pattern and each field has to mean something now, or it is a mistake; later events may add to it. */
int subscription_check(const Supervisor *s, const Subscription *u, Explanation *e);
/* Compiles it for every event that it selects. Refused if it fits none of them. */
int subscription_compile(const Supervisor *s, Subscription *u, Explanation *e);
/* The descriptors of routes from *first on, as fields of a packet: as many as fit, at least one. -ENOMEM. */
int subscription_describe(const Subscription *u, size_t *first, uint8_t **ret_bytes, size_t *ret_n);
Subscription *subscription_free(Subscription *u);
DEFINE_CLEANUP(Subscription *, subscription_free)

/* supervisor-subscribe.c */
int supervisor_subscribe(Supervisor *s, Connection *c, const Perfd__V1__Request *request, Explanation *e);
/* supervisor-subscription.c: routes of a new event in all subscriptions, and descriptors to their subscribers. */
int supervisor_route_event(Supervisor *s, const Registration *r);
void supervisor_unroute_event(Supervisor *s, const Event *event);
void supervisor_tell_removed(Supervisor *s, const Event *event);
int supervisor_on_word(sd_event_source *source, int fd, uint32_t revents, void *userdata);
void supervisor_free_subscriptions(Supervisor *s);

/* supervisor-ledger.c */
int supervisor_ledger(Supervisor *s, bool with_subscribers, Perfd__V1__Ledger **ret);
/* Posts the end to one subscriber, or all (0). */
int supervisor_close_stream(Supervisor *s, uint64_t id, const char *reason);
int supervisor_report(Supervisor *s, DispatcherReport *ret);
EventCut supervisor_event_totals(const Supervisor *s, const Registration *r);

/* supervisor-requests.c */
int supervisor_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request);
