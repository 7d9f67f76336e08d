/* What a verb is: the one table (verbs.c) from which parser, help, completion and the check of the man page come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define VERB_OPTIONS_MAX 48

typedef struct Perfctl Perfctl;

/* What the completion offers for a word. */
typedef enum Words {
        WORDS_NONE,
        WORDS_VERBS,
        WORDS_RUNNING, /* names of running events */
        WORDS_SELECTED, /* the same, and "@GROUP" */
        WORDS_OFFERED, /* events that the kernel offers */
        WORDS_SHOWN,   /* both */
        WORDS_EXTERNAL, /* running events that clients emit */
        WORDS_FILES,
        WORDS_FIELDS,       /* of the events that the command line names, and what every sample has; in an expression */
        WORDS_FIELDS_ALONE, /* the fields alone: what the kernel's filters know */
        WORDS_CGROUPS,
        WORDS_UNITS,
        WORDS_CONTAINERS,
        WORDS_PROCESSES,
        WORDS_THREADS,
} Words;

typedef struct Option {
        const char *name;     /* without its dashes */
        char letter;          /* 'x': it may be written -x too; 0: it has none */
        const char *argument; /* "PATH"; NULL: a switch */
        const char *otherwise; /* its value where no number stands behind it; NULL: it needs one */
        const char *help;
        const char *choices;  /* "a b c" for the completion, or NULL */
        Words words;          /* the same, by asking */
        bool repeats;         /* may be given several times: perfctl_get_all() */
        unsigned char each;   /* an event may have its own: event_option_get(); those of one number are of one kind; 0: none has */
} Option;

/* What a verb does if --host is given more than once. */
typedef enum HostsForm {
        HOSTS_ONE,    /* it refuses */
        HOSTS_EACH,   /* for one after the other: all of what it prints */
        HOSTS_LINES,  /* lines as they come */
        HOSTS_MERGED, /* items by their wall time */
} HostsForm;

typedef struct Verb {
        const char *name;
        const char *arguments; /* "EVENT [FILTER]" */
        const char *help;      /* one line */
        Option options[VERB_OPTIONS_MAX]; /* ended by one without a name */
        size_t min_arguments, max_arguments;
        Words words;           /* of arguments */
        Words words_behind;    /* of those behind the first; WORDS_NONE: the same */
        bool hidden;
        const char *frequency; /* times a second, of clocks and events of the CPU that are named without a rate; NULL: the daemon's choice */
        bool falls_back;       /* cycles are cpu-clock where the machine does not count them, as of perf record */
        bool has_command;      /* what stands behind "--" is somebody else's command line */
        bool is_offline;       /* it asks no daemon, so that $PERFD_HOST says nothing to it */
        HostsForm hosts;
        int (*tries_first)(Perfctl *p); /* on all hosts, before it runs on any: what says whether it would be refused; or NULL */
        int (*run)(Perfctl *p); /* gives the exit status */
} Verb;

#define VERB_ANY_NUMBER ((size_t)-1)

/* verbs/NAME.c */
extern const Verb verb_status, verb_list, verb_available, verb_show, verb_add, verb_remove, verb_enable, verb_disable,
        verb_filter, verb_period, verb_plan, verb_apply, verb_watch, verb_count, verb_stat, verb_emit, verb_ledger,
        verb_metrics, verb_fleet, verb_record, verb_info, verb_script, verb_flame, verb_export, verb_report, verb_top, verb_doctor, verb_validate, verb_reload, verb_stdio, verb_version, verb_help, verb_complete;

/* verbs.c: ended by NULL; for main alone, others have Perfctl.verbs */
extern const Verb *const verbs[];
/* command-line/command-line.c: ended by one without a name */
extern const Option global_options[];

/* verb.c: NULL if none of them is called so. */
const Verb *verb_find(const Verb *const *table, const char *name);
