/*
 * For the supervisor, and for all who only want to know whether a configuration is right: YAML to one immutable
 * Config. Needs no privileges and asks the kernel nothing. Each call on its own is for any thread; a Config is shared
 * by reference count.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/document/diagnostic.h"
#include "config/file-stamp.h"
#include "config/keys.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/strings.h"
#include "daemon/base/thread.h"

enum {
        CONFIG_EVENTS_MAX = 10 * 1000,
        CONFIG_TARGETS_MAX = 10 * 1000, /* and groups as many */
        CONFIG_IDS_MAX = 1 << 16,       /* different pids or tids of a target */
        CONFIG_NAMES_MAX = 1024,        /* different cgroups, containers or units of a target */
        CONFIG_DROP_INS_MAX = 1000,
        CONFIG_FIELDS_MAX = 64, /* of an external event */
        CONFIG_RULES_MAX = 256,
        CONFIG_GRANTS_MAX = 256, /* names and globs of one list of a rule */
};

/* The values of CALLCHAIN_ in daemon/model/event.h. */
enum {
        CONFIG_CALLCHAIN_KERNEL = 1 << 0,
        CONFIG_CALLCHAIN_USER = 1 << 1,
        CONFIG_CALLCHAIN_DWARF = 1 << 2,
};

enum {
        CONFIG_FALLBACK_NONE = 0,
        CONFIG_FALLBACK_CPU_CLOCK = 1,
};

typedef struct ConfigIds {
        uint32_t *ids; /* in the order of the file, none twice */
        size_t n_ids;
} ConfigIds;

/* The places of the items of a target's lists, for errors that only opening an event can find. */
typedef struct ConfigPlaces {
        ConfigPlace *items;
        size_t n;
} ConfigPlaces;

enum {
        CONFIG_TARGET_KEYS = 6, /* of a target, that have places: pids, tids, cgroups, containers, units, cpus */
};

typedef struct ConfigTarget {
        char *name;
        ConfigIds pids, tids; /* if one is not empty, cgroups, containers and units are */
        Strings cgroups;      /* paths or globs, without ".." */
        Strings containers;   /* ids or names; none of these three and no ids: every process */
        Strings units;        /* of systemd, perhaps globs */
        char *cpus;           /* CPU list as the kernel writes them, "0-3,8"; NULL is all */
        bool inherit;         /* children and new threads of pids and tids too */
        ConfigPlaces places[CONFIG_TARGET_KEYS]; /* of each item of these, in their order */
        ConfigPlace at;       /* path NULL: built in */
} ConfigTarget;

typedef struct ConfigEvent {
        char *event;    /* as in perf list, "{a,b}" for a group; parses with event_names_parse(), has no white space */
        char *name;     /* never NULL: the event's own text by default; for counters: the name of their group */
        const char *group; /* name of its ConfigGroup */
        size_t target;  /* index in Config.targets */
        char *filter;   /* of the kernel, only where event_name_has_fields(), but not of external events; NULL is none */
        char *args;     /* fetch args, probes only; NULL is none */
        uint64_t maxactive; /* kretprobes only; 0 is the kernel's default */
        uint64_t interval;  /* ns between two reads of the count; 0 is never */
        int fallback;       /* CONFIG_FALLBACK_, hardware cycles only */
        Strings attr;       /* "name=value": each parses with attr_setting_parse(), and together they pass attr_check() */
        Strings fields;     /* "name:type", external events only; no name twice */
        uint64_t period;    /* at most one of both is set; 0 and 0: each occurrence, or the event's default */
        uint64_t frequency; /* Hz */
        unsigned callchain; /* CONFIG_CALLCHAIN_ */
        bool enabled;
        bool include_self;
        ConfigPlace at;        /* of the event's text */
        ConfigPlace name_at;   /* of its name; `at` if it has none; path NULL while it is built: it has one that cannot be */
        ConfigPlace filter_at; /* of its filter; path NULL if it has none */
} ConfigEvent;

typedef struct ConfigGroup {
        char *name;
        char *target_name;
        Strings counters;  /* have become one event of the group's name */
        uint64_t interval; /* ns, of the counters */
        size_t target; /* index in Config.targets */
        ConfigPlace at, target_at; /* path NULL: not written */
} ConfigGroup;

/* What the clients of the stream socket may do to which it applies; without users and groups: all. */
typedef struct ConfigRule {
        Strings users, groups; /* as they are written */
        uint32_t *uids, *gids; /* what they mean on this host: host.h; a name that nobody has here is left out */
        size_t n_uids, n_gids;
        bool status;
        Strings subscribe; /* names or globs */
        char *where;       /* for all of them; NULL: none */
        Strings emit;
        bool stat;
        bool own_processes;
        ConfigPlace at, where_at;
} ConfigRule;

typedef struct Config {
        _Atomic(unsigned) n_refs;
        uint64_t version;
        bool strict;                      /* what the host does not have now refuses a start and a reload */
        char *control_path, *stream_path; /* of the two sockets, absolute, at most 107 bytes */
        char *state_path;                 /* of the file of persistent events; the same rules */
        int clock;                        /* clockid_t */
        uint64_t ring_size;               /* data bytes of each CPU's ring, a power of two of pages */
        uint64_t batch_pool;              /* bytes for batches of each CPU */
        ThreadPriority reader_priority, dispatcher_priority;
        char *reader_cpus;     /* CPU list: those that have a reader of their own; NULL is all */
        uint64_t reader_guard; /* ns: of rings that are read from another CPU */
        char *dispatcher_cpus; /* CPU list; NULL is all */
        uint64_t subscribers_max;
        uint64_t subscriber_memory, subscriber_memory_per_uid; /* bytes */
        uint64_t subscriber_queue; /* bytes, of each outbox */
        uint64_t subscriber_latency; /* ns: the least that may be asked for */
        uint64_t subscriber_default_latency; /* ns: of who asks for none; not less than that */
        uint64_t connections_max, connections_per_uid, connections_control;
        uint64_t events_per_uid, fds_per_uid; /* of events that clients add */
        mode_t control_mode, stream_mode;
        char *stream_group; /* name or number of the stream socket's group; whether it exists is not checked here */
        ConfigRule *rules;     /* in their order: the first that matches decides; of the last file that has any */
        size_t n_rules;
        ConfigTarget *targets; /* [0] is the built-in "host" */
        size_t n_targets;
        ConfigGroup *groups;
        size_t n_groups;
        ConfigEvent *events; /* in the order of files and lines */
        size_t n_events;
        char **paths; /* of the files read, in this order; [0] is the main one */
        size_t n_paths;
        FileStamps stamps; /* of files and the folder of drop-ins, as they were read; none: it was given as a text */
        uint64_t read_at;  /* CLOCK_REALTIME, ns: when the reading began; 0: nothing was read */
        ConfigPlace set_at[KEYS_MAX]; /* where each key of the whole was set last; path NULL: nowhere */
} Config;

/* What config_load() has read is still what is on disk, as far as stat(2) tells. */
bool config_is_current(const Config *c);
/* What holds without any file: the defaults of the table of keys, the host, no events. NULL: no memory. */
Config *config_default(void);

Config *config_ref(Config *c);
Config *config_unref(Config *c);
DEFINE_CLEANUP(Config *, config_unref)

/* Where item `i` of the list `key` of the event's target stands, "pids" or such; the event's own place if that is not known. */
ConfigPlace config_item_place(const Config *c, const ConfigEvent *event, const char *key, size_t i);

/* "monotonic", as `clock:` is written. */
const char *config_clock_name(const Config *c);

#define CONFIG_PRIORITY_SIZE 32
/* "fifo:1", as `readers.priority:` is written. */
char *config_priority_text(ThreadPriority p, char buffer[static CONFIG_PRIORITY_SIZE]);
