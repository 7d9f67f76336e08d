/*
 * A table of keys: one row is one key of perfd.yaml, or of another file that is read the same way (relay.yaml, client/relay/). Parser,
 * checks, defaults and hints come from it, and
 * tests/check/config-keys compares it with perfd.yaml(5). A new key is one row, and one item in the man page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum KeyType {
        KEY_SECTION,    /* mapping of the keys below this one */
        KEY_NAMED,      /* mapping of names to sections */
        KEY_EVENTS,     /* list of sections; an item may be the event's text alone */
        KEY_ATTR,       /* mapping: Strings "name=value", see attr-setting.h */
        KEY_FIELDS,     /* mapping, or list of names and types: Strings "name:type" */
        KEY_RULES,      /* list of sections; what an earlier file has of it goes */
        KEY_COUNT,      /* uint64_t, from min to max */
        KEY_SIZE,       /* uint64_t, bytes, from min to max */
        KEY_RING_SIZE,  /* the same, a power of two of pages */
        KEY_DURATION,   /* uint64_t, ns, from min to max */
        KEY_PRIORITY,   /* ThreadPriority */
        KEY_MODE,       /* mode_t */
        KEY_BOOL,       /* bool */
        KEY_CHOICE,     /* int, one of choices */
        KEY_CHOICES,    /* list: unsigned, some of choices */
        KEY_PATH,       /* char *, absolute, fits into a socket address */
        KEY_TEXT,       /* char *, one line */
        KEY_ACCOUNT,    /* char *, name or number of a group */
        KEY_NAME,       /* char *, see name_check() */
        KEY_EVENT,      /* char *, see event_names_parse(); without white space */
        KEY_FILTER,     /* char *, line breaks and the white space around them made single */
        KEY_ARGS,       /* char *, all white space made single */
        KEY_CPUS,       /* char *, CPU list */
        KEY_IDS,        /* list: ConfigIds, from min to max */
        KEY_CGROUP,     /* Strings, one path or glob */
        KEY_CGROUPS,    /* list: the same */
        KEY_WORDS,      /* list: Strings, ids or names without spaces */
        KEY_ACCOUNTS,   /* list: Strings, names or numbers of users or groups */
        KEY_COUNTERS,   /* list: Strings, each may be a member of a group, see event_names_parse() */
        _KEY_TYPE_MAX,
} KeyType;

/* What a key's value is a part of. */
typedef enum KeyOwner {
        OWNER_CONFIG,
        OWNER_TARGET,
        OWNER_GROUP,
        OWNER_EVENT,
        OWNER_RULE,
        _KEY_OWNER_MAX,
} KeyOwner;

typedef struct KeyChoice {
        const char *word; /* NULL ends the list */
        int value;
} KeyChoice;

typedef struct Key {
        const char *pattern; /* "groups.NAME.events[].event": NAME is any name, [] an item of the list */
        KeyType type;
        const char *default_text; /* as it would be written; NULL: none */
        const char *range;        /* what is expected, to follow "expected " */
        const char *help;
        bool required;
        bool restart; /* of OWNER_CONFIG: what perfd was started with holds until it ends */
        size_t offset; /* of the value in its owner: Config, ConfigTarget, ConfigGroup, ConfigEvent, ConfigRule */
        uint64_t min, max;
        const KeyChoice *choices;
} Key;

/* Rows in the order of the man page. */
extern const Key config_keys[];
extern const size_t n_config_keys;

#define KEYS_MAX 128

static inline size_t key_index(const Key *k) {
        return (size_t)(k - config_keys);
}

/* The row of `pattern`.`key`; with pattern "" a key of the top level. NULL if there is none. */
const Key *key_find(const char *pattern, const char *key);
/* The same in another table. */
const Key *key_find_in(const Key *keys, size_t n_keys, const char *pattern, const char *key);
/* The row is directly below `pattern`; gives its last part. NULL if it is not. */
const char *key_below(const Key *k, const char *pattern);
/* The struct that Key.offset refers to. */
KeyOwner key_owner(const Key *k);
/* For messages: the pattern without what stands for names and items, "rings.size", "filter". */
const char *key_label(const Key *k);
/* The word of a choice. */
const char *key_choice_word(const Key *k, int value);
