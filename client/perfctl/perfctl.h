/* For the verbs: what main() knows when it calls one. The program is one thread and ends with its verb. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/perfctl/memory.h"
#include "client/perfctl/output.h"
#include "client/perfctl/verb.h"
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
        size_t n;
} OptionValues;

struct Perfctl {
        const Verb *const *verbs; /* all that there are; ended by NULL */
        const Verb *verb;
        const char *socket; /* --socket, or NULL */
        bool json;
        bool help, version;
        bool human;         /* stdout is a terminal */
        const char *options[VERB_OPTIONS_MAX]; /* as in verb->options; NULL: not given, "": a switch that was */
        OptionValues repeated[VERB_OPTIONS_MAX];
        char **arguments;
        size_t n_arguments;
        char **command; /* behind "--", for a verb that has one; ended by NULL; NULL: none was given */
        perfd_client *client;
        Output out;
};

/* The value of an option of this verb, NULL if it was not given. */
const char *perfctl_get(const Perfctl *p, const char *option);
/* All values of one that may be given several times; as long as `p` lives. */
const char *const *perfctl_get_all(const Perfctl *p, const char *option, size_t *ret_n);

/* "perfctl: VERB: ..." on stderr; gives `code` back. */
int perfctl_fail(const Perfctl *p, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/*
 * What the last call of the library said, on stderr, and the exit status that it means. expression: where the error's
 * position lies, shown with a caret below it; or NULL.
 */
int perfctl_fail_client(const Perfctl *p, const char *expression);

/* On stderr: the line of the expression that has the mistake, and a caret below its character. */
void report_position(const char *expression, size_t offset);

/* To the daemon; 0, or an exit status after a message. */
int perfctl_connect(Perfctl *p);
/* The same without a message. */
int perfctl_connect_quietly(Perfctl *p);

/* main() itself, for tests. */
int perfctl_run(int argc, char **argv);
