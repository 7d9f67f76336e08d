/*
 * Rows are written with where their value goes, so that a key is added in one place; a test proves that default
 * texts are valid values of their own rows.
 */
#include "config/keys.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "config/config.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define MSEC UINT64_C(1000000) /* ns */
#define HOUR (UINT64_C(3600) * 1000 * MSEC)

#define PID_LIMIT 4194304 /* PID_MAX_LIMIT of a 64-bit Linux */

static const KeyChoice clocks[] = {
        { "monotonic", CLOCK_MONOTONIC },
        { "monotonic-raw", CLOCK_MONOTONIC_RAW },
        { "boottime", CLOCK_BOOTTIME },
        { "realtime", CLOCK_REALTIME },
        { NULL },
};

static const KeyChoice callchains[] = {
        { "kernel", CONFIG_CALLCHAIN_KERNEL },
        { "user", CONFIG_CALLCHAIN_USER },
        { "dwarf", CONFIG_CALLCHAIN_DWARF },
        { NULL },
};

static const KeyChoice fallbacks[] = {
        { "cpu-clock", CONFIG_FALLBACK_CPU_CLOCK },
        { NULL },
};

#define IN_CONFIG(field) .offset = offsetof(Config, field)
#define IN_TARGET(field) .offset = offsetof(ConfigTarget, field)
#define IN_GROUP(field) .offset = offsetof(ConfigGroup, field)
#define IN_EVENT(field) .offset = offsetof(ConfigEvent, field)
#define IN_RULE(field) .offset = offsetof(ConfigRule, field)

const Key config_keys[] = {
        { "version", KEY_COUNT, NULL, "1, the only version of this format",
          "version of the format; mandatory in the main file", IN_CONFIG(version), .min = 1, .max = 1 },

        { "strict", KEY_BOOL, "false", "true or false",
          "whether an event that cannot be opened now refuses the whole configuration", IN_CONFIG(strict) },

        { "listen", KEY_SECTION, .help = "the two sockets" },
        { "listen.control", KEY_PATH, "/run/perfd/control.sock", "an absolute path of at most 107 bytes",
          "socket for clients that may change what is traced", IN_CONFIG(control_path), .restart = true },
        { "listen.stream", KEY_PATH, "/run/perfd/stream.sock", "an absolute path of at most 107 bytes",
          "socket for clients that may only subscribe", IN_CONFIG(stream_path), .restart = true },

        { "access", KEY_SECTION, .help = "access to the sockets" },
        { "access.control-mode", KEY_MODE, "0600", "an octal file mode from 0000 to 0777",
          "file mode of listen.control", IN_CONFIG(control_mode), .restart = true },
        { "access.stream-mode", KEY_MODE, "0660", "an octal file mode from 0000 to 0777", "file mode of listen.stream",
          IN_CONFIG(stream_mode), .restart = true },
        { "access.stream-group", KEY_ACCOUNT, "perfd", "the name or number of a group", "group of listen.stream",
          IN_CONFIG(stream_group), .restart = true },
        { "access.rules", KEY_RULES, NULL, "a list of rules",
          "what clients of the stream socket may do; the first rule that matches a client decides" },
        { "access.rules[].users", KEY_ACCOUNTS, NULL, "names or numbers of users in a list, such as [ann, 1001]",
          "matches these users", IN_RULE(users) },
        { "access.rules[].groups", KEY_ACCOUNTS, NULL, "names or numbers of groups in a list, such as [developers]",
          "matches members of these groups", IN_RULE(groups) },
        { "access.rules[].status", KEY_BOOL, "false", "true or false",
          "query state, events, ledger and metrics, but no samples", IN_RULE(status) },
        { "access.rules[].subscribe", KEY_WORDS, NULL, "names of events or globs in a list, such as [\"sched:*\"]",
          "samples of these events", IN_RULE(subscribe) },
        { "access.rules[].where", KEY_FILTER, NULL, "a predicate of at most 4000 bytes, such as 'sample.pid == 17'",
          "predicate that restricts the samples of the client", IN_RULE(where) },
        { "access.rules[].emit", KEY_WORDS, NULL,
          "names of external events or globs in a list, such as [\"external:deploy\"]",
          "emit samples of these external events", IN_RULE(emit) },
        { "access.rules[].stat", KEY_BOOL, "false", "true or false", "add events that are only counted: perfctl stat",
          IN_RULE(stat) },
        { "access.rules[].own-processes", KEY_BOOL, "false", "true or false",
          "add events on the client's own processes", IN_RULE(own_processes) },

        { "state", KEY_PATH, "/var/lib/perfd/events", "an absolute path of at most 107 bytes",
          "file of persistent events of clients", IN_CONFIG(state_path), .restart = true },

        { "clock", KEY_CHOICE, "monotonic", "one of monotonic, monotonic-raw, boottime, realtime",
          "clock of every time stamp", IN_CONFIG(clock), .choices = clocks, .restart = true },

        { "rings", KEY_SECTION, .help = "the kernel's ring buffers" },
        { "rings.size", KEY_RING_SIZE, "4MiB", "a power of two from 4KiB to 1GiB", "size of the ring of each CPU",
          IN_CONFIG(ring_size), .min = 4 * KIB, .max = GIB },

        { "batches", KEY_SECTION, .help = "samples between a reader and the dispatcher" },
        { "batches.pool", KEY_SIZE, "2MiB", "a size from 256KiB to 1GiB", "memory for the batches of each CPU",
          IN_CONFIG(batch_pool), .min = 256 * KIB, .max = GIB, .restart = true },

        { "readers", KEY_SECTION, .help = "the threads that read the ring buffers" },
        { "readers.priority", KEY_PRIORITY, "fifo:1",
          "normal, nice:N from nice:-20 to nice:19 or fifo:N from fifo:1 to fifo:99", "how readers are scheduled",
          IN_CONFIG(reader_priority), .restart = true },
        { "readers.cpus", KEY_CPUS, NULL, "a list of CPUs such as \"0-3,8\", none above 8191",
          "CPUs that have a reader of their own; the ring buffers of others are read from these",
          IN_CONFIG(reader_cpus), .restart = true },
        { "readers.guard", KEY_DURATION, "5ms", "a duration from 100us to 100ms",
          "how long records of a CPU without a reader are waited for", IN_CONFIG(reader_guard), .min = MSEC / 10,
          .max = 100 * MSEC, .restart = true },

        { "dispatcher", KEY_SECTION, .help = "the thread that serves subscribers" },
        { "dispatcher.priority", KEY_PRIORITY, "fifo:1",
          "normal, nice:N from nice:-20 to nice:19 or fifo:N from fifo:1 to fifo:99", "how it is scheduled",
          IN_CONFIG(dispatcher_priority), .restart = true },
        { "dispatcher.cpus", KEY_CPUS, NULL, "a list of CPUs such as \"0-3,8\", none above 8191",
          "CPUs that it may run on", IN_CONFIG(dispatcher_cpus), .restart = true },

        { "subscribers", KEY_SECTION, .help = "limits of subscribers" },
        { "subscribers.max", KEY_COUNT, "4096", "a whole number from 1 to 10000", "simultaneous subscribers",
          IN_CONFIG(subscribers_max), .min = 1, .max = 10000, .restart = true },
        { "subscribers.memory", KEY_SIZE, "1GiB", "a size from 1MiB to 1024GiB",
          "memory for queues and rings of all subscribers together", IN_CONFIG(subscriber_memory), .min = KIB * KIB,
          .max = KIB * GIB },
        { "subscribers.memory-per-uid", KEY_SIZE, "512MiB", "a size from 1MiB to 1024GiB",
          "the same, of the subscribers of one user", IN_CONFIG(subscriber_memory_per_uid), .min = KIB * KIB,
          .max = KIB * GIB },
        { "subscribers.queue", KEY_SIZE, "8MiB", "a size from 64KiB to 1GiB", "memory for the queue of one subscriber",
          IN_CONFIG(subscriber_queue), .min = 64 * KIB, .max = GIB },
        { "subscribers.latency", KEY_DURATION, "100us", "a duration from 20us to 1h, such as 1ms",
          "the lowest latency that a subscriber may request", IN_CONFIG(subscriber_latency), .min = MSEC / 50,
          .max = HOUR },
        { "subscribers.default-latency", KEY_DURATION, "100ms", "a duration from 20us to 1h, such as 100ms",
          "the latency of subscribers that request none", IN_CONFIG(subscriber_default_latency), .min = MSEC / 50,
          .max = HOUR },

        { "connections", KEY_SECTION, .help = "limits of connections" },
        { "connections.max", KEY_COUNT, "256", "a whole number from 1 to 10000",
          "simultaneous connections to the stream socket", IN_CONFIG(connections_max), .min = 1, .max = 10000,
          .restart = true },
        { "connections.per-uid", KEY_COUNT, "128", "a whole number from 1 to 10000", "those of one user",
          IN_CONFIG(connections_per_uid), .min = 1, .max = 10000, .restart = true },
        { "connections.control", KEY_COUNT, "32", "a whole number from 1 to 10000",
          "simultaneous connections to the control socket", IN_CONFIG(connections_control), .min = 1, .max = 10000,
          .restart = true },

        { "events", KEY_SECTION, .help = "limits of events that clients add" },
        { "events.per-uid", KEY_COUNT, "1000", "a whole number from 1 to 10000",
          "events that the clients of one user have added", IN_CONFIG(events_per_uid), .min = 1, .max = 10000 },

        { "fds", KEY_SECTION, .help = "limits of perf event fds" },
        { "fds.per-uid", KEY_COUNT, "16384", "a whole number from 1 to 10000000",
          "fds of the events of the clients of one user", IN_CONFIG(fds_per_uid), .min = 1, .max = 10000000 },

        { "targets", KEY_NAMED, .help = "targets, by name" },
        { "targets.NAME.pids", KEY_IDS, NULL, "process ids from 1 to 4194304 in a list, such as [1, 2]",
          "processes, with all their threads", IN_TARGET(pids), .min = 1, .max = PID_LIMIT },
        { "targets.NAME.tids", KEY_IDS, NULL, "thread ids from 1 to 4194304 in a list, such as [1, 2]",
          "single threads", IN_TARGET(tids), .min = 1, .max = PID_LIMIT },
        { "targets.NAME.cpus", KEY_CPUS, NULL, "a list of CPUs such as \"0-3,8\", none above 8191",
          "restricts the target to these CPUs", IN_TARGET(cpus) },
        { "targets.NAME.cgroups", KEY_CGROUPS, NULL,
          "cgroups in a list, by path or glob, such as [system.slice/nginx.service, \"user.slice/**\"]",
          "processes of cgroups, and of those below them", IN_TARGET(cgroups) },
        { "targets.NAME.cgroup", KEY_CGROUP, NULL, "the path of a cgroup or a glob, such as system.slice/nginx.service",
          "one more of cgroups", IN_TARGET(cgroups) },
        { "targets.NAME.containers", KEY_WORDS, NULL,
          "containers in a list, by id, name or glob, such as [3dcb1a9f0e4c, \"web-*\"]", "processes of containers",
          IN_TARGET(containers) },
        { "targets.NAME.units", KEY_WORDS, NULL, "units of systemd in a list, such as [nginx.service]",
          "processes of units", IN_TARGET(units) },
        { "targets.NAME.inherit", KEY_BOOL, "true", "true or false",
          "include later children and threads of pids and tids", IN_TARGET(inherit) },

        { "groups", KEY_NAMED, .help = "events, by name of their group" },
        { "groups.NAME.target", KEY_NAME, "host", "the name of a target", "target of all events of the group",
          IN_GROUP(target_name) },
        { "groups.NAME.counters", KEY_COUNTERS, NULL, "names of events in a list, such as [cycles, instructions]",
          "counters that are scheduled as one group and read at one moment, instead of events", IN_GROUP(counters) },
        { "groups.NAME.interval", KEY_DURATION, "1s", "a duration from 1ms to 1h, such as 100ms",
          "how often the counters are read", IN_GROUP(interval), .min = MSEC, .max = HOUR },
        { "groups.NAME.events", KEY_EVENTS, NULL, "a list of events", "the events of the group" },
        { "groups.NAME.events[].event", KEY_EVENT, NULL, "the name of an event as in perf list", "what is traced",
          .required = true, IN_EVENT(event) },
        { "groups.NAME.events[].name", KEY_NAME, NULL, "a name", "its name in perfd; by default the text of 'event'",
          IN_EVENT(name) },
        { "groups.NAME.events[].filter", KEY_FILTER, NULL, "a filter of at most 4000 bytes",
          "the kernel's filter on the fields of a tracepoint or probe", IN_EVENT(filter) },
        { "groups.NAME.events[].args", KEY_ARGS, NULL, "fetch args of at most 4000 bytes, such as 'file=%di:x64'",
          "the data that a probe records, in the kernel's language", IN_EVENT(args) },
        { "groups.NAME.events[].maxactive", KEY_COUNT, NULL, "a whole number from 1 to 4096",
          "kretprobe: simultaneous calls that are tracked", IN_EVENT(maxactive), .min = 1, .max = 4096 },
        { "groups.NAME.events[].period", KEY_COUNT, NULL, "a whole number from 1 to 9223372036854775807",
          "one sample for this number of events, or nanoseconds of a clock", IN_EVENT(period), .min = 1,
          .max = INT64_MAX },
        { "groups.NAME.events[].frequency", KEY_COUNT, NULL, "a whole number from 1 to 1000000",
          "samples a second, instead of a period", IN_EVENT(frequency), .min = 1, .max = 1000000 },
        { "groups.NAME.events[].interval", KEY_DURATION, NULL, "a duration from 1ms to 1h, such as 1s or 100ms",
          "how often the count is read", IN_EVENT(interval), .min = MSEC, .max = HOUR },
        { "groups.NAME.events[].fallback", KEY_CHOICE, NULL, "cpu-clock",
          "the event to sample if this machine cannot count cycles", IN_EVENT(fallback), .choices = fallbacks },
        { "groups.NAME.events[].callchain", KEY_CHOICES, NULL, "kernel, user or dwarf in a list, such as [kernel, user]",
          "the callchains that are recorded with each sample", IN_EVENT(callchain), .choices = callchains },
        { "groups.NAME.events[].enabled", KEY_BOOL, "true", "true or false", "whether it is enabled at the start",
          IN_EVENT(enabled) },
        { "groups.NAME.events[].include-self", KEY_BOOL, "false", "true or false",
          "whether perfd's own activity is traced", IN_EVENT(include_self) },
        { "groups.NAME.events[].attr", KEY_ATTR, NULL,
          "a mapping of fields of perf_event_attr, such as {exclude-hv: true}",
          "further settings for perf_event_open(2)", IN_EVENT(attr) },
        { "groups.NAME.events[].fields", KEY_FIELDS, NULL,
          "a mapping of names to u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes, such as {user: text, code: u32}",
          "the fields of an external event", IN_EVENT(fields) },
};

const size_t n_config_keys = ARRAY_SIZE(config_keys);
_Static_assert(ARRAY_SIZE(config_keys) <= KEYS_MAX, "more keys than a set of them has room for: raise KEYS_MAX");

const char *key_below(const Key *k, const char *pattern) {
        size_t n = strlen(pattern);
        const char *last = k->pattern + n;

        if (strncmp(k->pattern, pattern, n) != 0)
                return NULL;
        if (n > 0 && *last++ != '.')
                return NULL;
        return strchr(last, '.') ? NULL : last;
}

const Key *key_find_in(const Key *keys, size_t n_keys, const char *pattern, const char *key) {
        for (size_t i = 0; i < n_keys; i++) {
                const char *last = key_below(&keys[i], pattern);

                if (last && strcmp(last, key) == 0)
                        return &keys[i];
        }
        return NULL;
}

const Key *key_find(const char *pattern, const char *key) {
        return key_find_in(config_keys, n_config_keys, pattern, key);
}

KeyOwner key_owner(const Key *k) {
        if (strncmp(k->pattern, "targets.NAME.", strlen("targets.NAME.")) == 0)
                return OWNER_TARGET;
        if (strncmp(k->pattern, "access.rules[].", strlen("access.rules[].")) == 0)
                return OWNER_RULE;
        if (strstr(k->pattern, "[]."))
                return OWNER_EVENT;
        return strncmp(k->pattern, "groups.NAME.", strlen("groups.NAME.")) == 0 ? OWNER_GROUP : OWNER_CONFIG;
}

const char *key_label(const Key *k) {
        const char *item = strstr(k->pattern, "[]."), *name = strstr(k->pattern, "NAME.");

        return item ? item + strlen("[].") : name ? name + strlen("NAME.") : k->pattern;
}

const char *key_choice_word(const Key *k, int value) {
        for (const KeyChoice *c = k->choices; c->word; c++)
                if (c->value == value)
                        return c->word;
        assert(false);
        return NULL;
}
