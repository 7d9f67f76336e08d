/* perfd(8): options, configuration, and the last word on what failed. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/parse/load.h"
#include "config/text/number.h"
#include "config/text/words.h"
#include "daemon/base/log.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/requests/doctor.h"
#include "daemon/supervisor/resolve/names.h"
#include "daemon/supervisor/supervisor.h"

#define EXIT_USAGE 2

static const char usage[] =
        "usage: perfd [--config FILE] [--runtime-directory DIR] [--ready-fd N]\n"
        "             [--keep-capabilities]\n"
        "       perfd --check [--any-host | --names] --config FILE\n"
        "       perfd --check-host [--json] [--config FILE] [--keep-capabilities]\n"
        "       perfd --version | --help\n"
        "\n"
        "  --config FILE            configuration; perfd.yaml(5)\n"
        "  --check                  only say whether it is valid\n"
        "  --any-host               the same for another host: CPUs that this one cannot\n"
        "                           have are no errors\n"
        "  --names                  the same, and which events this kernel does not have\n"
        "                           now\n"
        "  --check-host             only say what this host, these privileges and limits\n"
        "                           allow\n"
        "  --json                   the same, one JSON document on each line\n"
        "  --runtime-directory DIR  sockets are DIR/control.sock and DIR/stream.sock,\n"
        "                           persistent events in DIR/events\n"
        "  --ready-fd N             gets a newline and is closed when perfd is ready\n"
        "  --keep-capabilities      keeps CAP_SYS_ADMIN also where the kernel opens perf\n"
        "                           events without it, and all that root has\n";

typedef struct Options {
        const char *config, *runtime_directory;
        int ready_fd;
        bool check, check_host, any_host, names, json, keep_capabilities;
} Options;

/*
 * A number that nobody opened would be that of some fd of perfd's own by the time it is written to. Standard output and error
 * are open (open_standard_fds()).
 */
static bool ready_fd_parse(const char *text, int *ret_fd) {
        const char *end;
        uint64_t fd;
        int flags;

        if (!number_decode(text, &fd, &end) || *end || fd > INT_MAX)
                return false;
        flags = fcntl((int)fd, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
                return false;
        *ret_fd = (int)fd;
        return true;
}

/* Else what perfd opens first becomes standard error, and gets its log. */
static void open_standard_fds(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        close_fd(fd);
}

/* -1: go on, else the exit code. */
static int parse_options(int argc, char **argv, Options *o) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' },
                { "check", no_argument, NULL, 'k' },
                { "check-host", no_argument, NULL, 'd' },
                { "any-host", no_argument, NULL, 'a' },
                { "names", no_argument, NULL, 'n' },
                { "json", no_argument, NULL, 'j' },
                { "runtime-directory", required_argument, NULL, 'r' },
                { "ready-fd", required_argument, NULL, 'f' },
                { "keep-capabilities", no_argument, NULL, 'p' },
                { "version", no_argument, NULL, 'V' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "c:h", options, NULL)) >= 0) {
                switch (c) {
                case 'c':
                        o->config = optarg;
                        break;
                case 'k':
                        o->check = true;
                        break;
                case 'a':
                        o->any_host = true;
                        break;
                case 'd':
                        o->check_host = true;
                        break;
                case 'n':
                        o->names = true;
                        break;
                case 'j':
                        o->json = true;
                        break;
                case 'r':
                        o->runtime_directory = optarg;
                        break;
                case 'f':
                        if (!ready_fd_parse(optarg, &o->ready_fd)) {
                                fprintf(stderr, "perfd: --ready-fd: %s is not an open fd that perfd may write to\n", QUOTE(optarg));
                                return EXIT_USAGE;
                        }
                        break;
                case 'p':
                        o->keep_capabilities = true;
                        break;
                case 'V':
                        puts("perfd " PERFD_VERSION);
                        return 0;
                case 'h':
                        fputs(usage, stdout);
                        return 0;
                default:
                        fputs(usage, stderr);
                        return EXIT_USAGE;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "perfd: unexpected argument %s\n%s", QUOTE(argv[optind]), usage);
                return EXIT_USAGE;
        }
        if (o->check && !o->config) {
                fprintf(stderr, "perfd: --check needs --config FILE\n");
                return EXIT_USAGE;
        }
        if (o->json && !o->check_host) {
                fprintf(stderr, "perfd: --json needs --check-host\n");
                return EXIT_USAGE;
        }
        if (o->any_host && !o->check) {
                fprintf(stderr, "perfd: --any-host needs --check\n");
                return EXIT_USAGE;
        }
        if (o->names && (!o->check || o->any_host)) {
                fprintf(stderr, "perfd: --names needs --check, and excludes --any-host\n");
                return EXIT_USAGE;
        }
        if (o->check && o->check_host) {
                fprintf(stderr, "perfd: --check and --check-host exclude each other\n");
                return EXIT_USAGE;
        }
        return -1;
}

/* What only goes to stderr would be no error in the journal. */
static void log_diagnostic(const ConfigDiagnostic *diagnostic) {
        char text[900];

        if (!log_is_journal()) {
                config_diagnostic_print(diagnostic, stderr);
                return;
        }
        (void)config_diagnostic_text(diagnostic, text, sizeof(text));
        log_print_with(diagnostic->warning ? LOG_WARNING : LOG_ERR, MESSAGE_BAD_CONFIG,
                       LOG_FIELDS({ "REASON", "bad-config" }), "%s", text);
}

/* NULL: said why. */
static Config *load_config(const char *path) {
        ConfigDiagnostics diagnostics = CONFIG_DIAGNOSTICS_NULL;
        Config *c = NULL;
        int r = 0;

        if (path)
                r = config_load(path, &diagnostics, &c);
        else
                c = config_default();
        if (r == 0 && c && (r = access_check(c, &diagnostics)) == 0 && (r = config_diagnostics_finish(&diagnostics)) == 0 &&
            diagnostics.n_errors > 0)
                c = config_unref(c);
        for (size_t i = 0; i < diagnostics.n_items; i++)
                log_diagnostic(&diagnostics.items[i]);
        config_diagnostics_deinit(&diagnostics);
        if (r < 0 || (r == 0 && !c && !path))
                log_print(LOG_ERR, MESSAGE_FAILED, "%s", r ? error_text(r) : strerror(ENOMEM));
        return c;
}

/* Notes are no failure, but what would refuse a start is. */
static int check_events(const Config *c, bool names) {
        ConfigDiagnostics diagnostics = CONFIG_DIAGNOSTICS_NULL;
        int r = names ? resolver_check_names(c, &diagnostics) : resolver_check_filters(c, &diagnostics);

        for (size_t i = 0; i < diagnostics.n_items; i++)
                config_diagnostic_print(&diagnostics.items[i], stderr);
        if (r < 0)
                fprintf(stderr, "perfd: %s\n", error_text(r));
        if (r == 0 && diagnostics.n_errors > 0)
                r = REFUSED_INVALID;
        config_diagnostics_deinit(&diagnostics);
        return r;
}

static int fail(int r, const Explanation *e) {
        if (r > 0 || e->text[0])
                log_print_with(LOG_ERR, MESSAGE_FAILED, LOG_FIELDS({ "REASON", e->reason }), "%s", e->text);
        else
                log_print(LOG_ERR, MESSAGE_FAILED, "a required system call failed: %s", error_text(r));
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        Options o = { .ready_fd = -1 };
        Supervisor s = { .loop.ready_fd = -1, .host.tracing = TRACING_NULL, .closer = CLOSER_NULL,
                         .readers = { .acknowledge_fd = -1, .uid_socket = -1 }, .subscriptions.memory = SUBSCRIBER_MEMORY_NULL,
                         .ledger.losses = LOSSES_NULL, .changes.hotplug_fd = -1 };
        Explanation e = EXPLANATION_NULL;
        int r;

        open_standard_fds();
        r = parse_options(argc, argv, &o);
        if (r >= 0)
                return r;
        thread_become(THREAD_MAIN);
        s.readers.dispatcher.mailbox = s.readers.dispatcher.notices = MAILBOX_NULL;
        s.readers.dispatcher.dispatching = DISPATCHING_NULL;
        r = o.any_host ? 0 : cpus_tell_config();
        if (r < 0)
                return fail(r, &e);
        s.settings.config = load_config(o.config);
        if (!s.settings.config)
                return EXIT_FAILURE;
        if (o.check) {
                r = o.any_host ? 0 : state_file_check_place(s.settings.config->state_path, &e);
                if (r != 0)
                        fprintf(stderr, "%s: state: %s\n", o.config, e.text);
                if (check_events(s.settings.config, o.names) != 0)
                        r = -1;
                config_unref(s.settings.config);
                return r != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        }
        if (o.check_host) {
                r = requests_check_host(s.settings.config, o.keep_capabilities, o.json);
                config_unref(s.settings.config);
                return r < 0 ? fail(r, &e) : r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
        s.loop.ready_fd = o.ready_fd;
        s.host.privileges.keep = o.keep_capabilities;
        if ((o.config && !(s.settings.config_path = realpath(o.config, NULL))) ||
            (o.runtime_directory && !(s.settings.runtime_directory = strdup(o.runtime_directory))))
                return fail(error_origin(-errno), &e);

        r = error_trace(supervisor_start(&s, &e));
        if (r == 0)
                r = error_trace(supervisor_run(&s));
        r = r != 0 ? fail(r, &e) : EXIT_SUCCESS;
        if (!supervisor_stop(&s))
                _exit(r); /* exit handlers would run beside a thread that may go on at any moment */
        return r;
}
