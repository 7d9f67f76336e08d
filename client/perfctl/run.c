/*
 * From argv to an exit status. SIGPIPE is ignored, so that a reader that goes away ends a verb in an orderly and quiet
 * way: EPIPE on stdout is what `perfctl watch | head` means, not a failure.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/command-line/command-line.h"
#include "client/perfctl/hosts.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/verbs/help.h"

static int end(Perfctl *p, int code) {
        output_flush(&p->out);
        if (p->out.error != 0 && p->out.error != EPIPE)
                code = perfctl_fail(p, PERFCTL_FAILED, "writing the output: %s", strerror(p->out.error));
        perfd_client_free(p->client);
        p->client = NULL;
        return code;
}

static int run(Perfctl *p) {
        if (p->version) {
                output_print(&p->out, "perfctl %s\n", PERFD_VERSION);
                return PERFCTL_OK;
        }
        if (p->verb && p->help)
                return help_print_verb(p, p->verb);
        if (p->verb)
                return hosts_are_meant(p) ? hosts_run(p, end) : p->verb->run(p);
        help_print_all(p, p->help ? NULL : stderr);
        return p->help ? PERFCTL_OK : PERFCTL_USAGE;
}

/* It reads a recording. */
static bool asks_nobody(const Perfctl *p) {
        const Option *o = p->verb->options;

        while (o->name && strcmp(o->name, "input") != 0)
                o++;
        return p->verb->is_offline || (o->name && perfctl_get(p, "input"));
}

/*
 * Names with blanks between them, if no option says which daemon. `fleet` reads what hosts publish, by globs that are its own, and some
 * verbs ask no daemon. malloc, as long as `p` has the names; NULL: there are none.
 */
static char *take_environment(Perfctl *p) {
        const char *hosts = getenv("PERFD_HOST");
        char *text, *rest, *name;

        if (p->hosts.n > 0 || p->socket || !hosts)
                return NULL;
        text = must_have(strdup(hosts));
        for (name = strtok_r(text, " \t\n", &rest); name; name = strtok_r(NULL, " \t\n", &rest))
                perfctl_add_host(p, name);
        if (p->verb && (p->verb->hidden || p->verb == &verb_help || p->verb == &verb_fleet || asks_nobody(p)))
                p->hosts.n = 0;
        return text;
}

/* Names that are empty are of a script whose variable is not set: its command is for no host, not for this one. */
static int check_hosts(const Perfctl *p, bool is_environment) {
        for (size_t i = 0; i < p->hosts.n; i++) {
                if (!*p->hosts.items[i])
                        return perfctl_fail(p, PERFCTL_USAGE, "--host: the value is empty");
                for (size_t k = 0; k < i; k++)
                        if (strcmp(p->hosts.items[i], p->hosts.items[k]) == 0)
                                return perfctl_fail(p, PERFCTL_USAGE, is_environment ? "$PERFD_HOST: %s is named twice" :
                                                                                       "--host %s was already given",
                                                    p->hosts.items[i]);
        }
        return 0;
}

/* It is of ssh and TLS. */
static int check_compression(const Perfctl *p) {
        const char *local = p->host ? NULL : "this host";

        if (!p->compress || p->help || p->version)
                return 0;
        if (p->verb && strcmp(p->verb->name, "fleet") == 0)
                return perfctl_fail(p, PERFCTL_USAGE, "--compress is for --host, by ssh or tls://: messages of NATS are as they were published; "
                                    "fields and where in publish.routes of relay.yaml make them fewer and smaller");
        if (p->verb && strcmp(p->verb->name, "record") == 0 && !p->host)
                return perfctl_fail(p, PERFCTL_USAGE, "--compress is for --host: -z compresses recordings");
        for (size_t i = 0; i < p->hosts.n && !local; i++)
                if (strncmp(p->hosts.items[i], "unix:", strlen("unix:")) == 0)
                        local = p->hosts.items[i];
        return local ? perfctl_fail(p, PERFCTL_USAGE, "--compress is for another host, by --host HOST or --host tls://HOST:PORT: %s is read "
                                    "by a socket", local) : 0;
}

int perfctl_run(int argc, char **argv) {
        static Perfctl p; /* large, and there is one */
        const char *headings = getenv("PERFCTL_HEADINGS");
        char *environment;
        int r;

        p = (Perfctl){ .verbs = verbs, .human = isatty(STDOUT_FILENO), .headings = headings && *headings };
        output_init(&p.out, STDOUT_FILENO);
        (void)signal(SIGPIPE, SIG_IGN);
        r = command_line_parse(&p, argc, argv);
        table_show_headings(p.headings);
        environment = take_environment(&p);
        p.is_of_environment = environment != NULL;
        if (r == 0)
                r = check_hosts(&p, environment);
        if (!hosts_are_meant(&p))
                perfctl_choose_host(&p);
        if (r == 0)
                r = check_compression(&p);
        if (r == 0)
                r = run(&p);
        r = end(&p, r);
        free(p.hosts.items);
        p.hosts = (HostNames){ .n = 0 };
        free(environment);
        return r;
}
