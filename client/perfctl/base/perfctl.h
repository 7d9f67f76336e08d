/* For the verbs: what main() knows when it calls one. The program is one thread and ends with its verb. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/base/output.h"
#include "client/perfctl/base/verb.h"
#include "client/perfd.h"

enum {
        PERFCTL_OK = 0,
        PERFCTL_FAILED = 1,
        PERFCTL_USAGE = 2,
        PERFCTL_UNREACHABLE = 3,
        PERFCTL_LOST = 4, /* all went as it was asked for, but samples were lost */
};

/* The values of an option that may be given several times. */
typedef struct OptionValues {
        const char **items;
        size_t *places; /* Perfctl.n_events when it was given */
        size_t n;
} OptionValues;

typedef struct HostNames {
        const char **items; /* malloc */
        size_t n;
} HostNames;

typedef struct EventOption {
        const Option *option;
        const char *value;
        size_t n_before; /* events that stand before it */
} EventOption;

/* Of several hosts: the stream of one of them was lost, and nothing came until it was there again. */
typedef struct HostGap {
        uint64_t from; /* ns since 1970: when the last thing that came had occurred */
        uint64_t to;   /* 0: it ends where the stream begins */
        char *why;     /* malloc; NULL: there is no gap */
} HostGap;

struct Perfctl {
        const Verb *const *verbs; /* all that there are; ended by NULL */
        const Verb *verb;
        const char *socket; /* --socket, or NULL; with a host: its path there */
        const char *host;   /* another machine: --host or $PERFD_HOST; NULL: this one */
        HostNames hosts;    /* all of them, where there are several */
        bool is_of_environment; /* $PERFD_HOST has named them */
        bool is_of_several; /* this process is one of those that hosts_run() has started */
        HostGap gap;        /* before its stream; with `to` it has none, and prints the gap alone */
        const char *tls;    /* a directory of certificates: --tls, or NULL */
        bool compress;      /* what comes from another host: --compress */
        bool json;
        bool headings;      /* of tables, also where there is no terminal: --headings or $PERFCTL_HEADINGS */
        bool help, version;
        bool human;         /* stdout is a terminal */
        const char *options[VERB_OPTIONS_MAX]; /* as in verb->options; NULL: not given, "": a switch that was */
        char letters[VERB_OPTIONS_MAX]; /* by which options were given, for messages; 0: by their names */
        OptionValues repeated[VERB_OPTIONS_MAX];
        char **arguments;
        size_t *argument_places; /* as OptionValues.places */
        size_t n_arguments;
        size_t n_events; /* arguments and values of the option `event`: in the order in which they were given */
        EventOption *event_options; /* in their order */
        size_t n_event_options;
        char **command; /* behind "--", for a verb that has one; ended by NULL; NULL: none was given */
        perfd_client *client;
        const char *path; /* of the socket that it is connected to, on this machine */
        Output out;
};

/* The value of an option of this verb, NULL if it was not given. */
const char *perfctl_get(const Perfctl *p, const char *option);
/* Another one, or none, which lives as long as `p`. */
void perfctl_set(Perfctl *p, const char *option, const char *value);
/* All values of one that may be given several times; as long as `p` lives. */
const OptionValues *perfctl_get_values(const Perfctl *p, const char *option);
const char *const *perfctl_get_all(const Perfctl *p, const char *option, size_t *ret_n);

/* "perfctl: VERB: ..." on stderr; gives `code` back. */
int perfctl_fail(const Perfctl *p, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/*
 * What the last call of the library said, on stderr, and the exit status that it means. expression: where the error's
 * position lies, shown with a caret below it; or NULL.
 */
int perfctl_fail_client(const Perfctl *p, const char *expression);

/* On stderr: the line of the expression that has the error, and a caret below its character. */
void report_position(const char *expression, size_t offset);

/* Of one more host; the name lives as long as `p`. */
void perfctl_add_host(Perfctl *p, const char *host);
/* A host that is unix:PATH is this machine: PATH is its socket. */
void perfctl_choose_host(Perfctl *p);
/* To the daemon; 0, or an exit status after a message. */
int perfctl_connect(Perfctl *p);
/* The same without a message, and of this machine only: another one might ask for a password. */
int perfctl_connect_quietly(Perfctl *p);
/* Where certificates are: --tls, $PERFD_TLS, or the user's own directory; malloc. */
char *perfctl_tls_directory(const Perfctl *p);
/* The host is one that is reached by tls://. */
bool perfctl_is_tls(const Perfctl *p);

/* main() itself, for tests. */
int perfctl_run(int argc, char **argv);
