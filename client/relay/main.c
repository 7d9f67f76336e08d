/* perfd-relay(8): options, and the verb that makes certificates. */
#include <fcntl.h>
#include <getopt.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/relay/certificates.h"
#include "client/relay/relay.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

#define EXIT_USAGE 2

static const char usage[] =
        "usage: perfd-relay --config FILE [--check]\n"
        "       perfd-relay certificates DIR --server NAME --client NAME [--perfd DIR]\n"
        "       perfd-relay --version | --help\n"
        "\n"
        "  --config FILE  configuration; relay.yaml(5)\n"
        "  --check        only say whether it and the files that it names are valid\n"
        "\n"
        "  certificates   makes a CA and certificates in DIR, for a trial, and a\n"
        "                 relay.yaml that uses them on 127.0.0.1:7443\n"
        "  --server NAME  how clients call this host: a name or an address\n"
        "  --client NAME  name of the client\n"
        "  --perfd DIR    directory of perfd's sockets; without: that of\n"
        "                 $PERFD_SOCKET, else /run/perfd\n";

typedef struct Options {
        const char *config, *server, *client, *perfd;
        bool check;
} Options;

/* Else what is opened first becomes standard error, and gets the log. */
static void open_standard_fds(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        close_fd(fd);
}

static int fail_usage(const char *text) {
        fprintf(stderr, "perfd-relay: %s\n%s", text, usage);
        return EXIT_USAGE;
}

/* -1: go on, else the exit code. */
static int parse_options(int argc, char **argv, Options *o) {
        static const struct option options[] = {
                { "config", required_argument, NULL, 'c' }, { "check", no_argument, NULL, 'k' },
                { "server", required_argument, NULL, 's' }, { "client", required_argument, NULL, 'l' },
                { "perfd", required_argument, NULL, 'p' },  { "version", no_argument, NULL, 'V' },
                { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
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
                case 's':
                        o->server = optarg;
                        break;
                case 'l':
                        o->client = optarg;
                        break;
                case 'p':
                        o->perfd = optarg;
                        break;
                case 'V':
                        puts("perfd-relay " PERFD_VERSION);
                        return 0;
                case 'h':
                        fputs(usage, stdout);
                        return 0;
                default:
                        fputs(usage, stderr);
                        return EXIT_USAGE;
                }
        }
        return -1;
}

static int make_certificates(int argc, char **argv, const Options *o) {
        if (argc - optind != 2)
                return fail_usage("certificates needs one directory");
        if (!o->server || !o->client || o->config || o->check)
                return fail_usage("certificates needs --server NAME and --client NAME");
        return certificates_make(argv[optind + 1], o->server, o->client, o->perfd);
}

static int check(const char *path) {
        RelayConfig *config;
        SSL_CTX *tls;
        int r = relay_load(path, false, &config, &tls);

        if (r < 0)
                fprintf(stderr, "perfd-relay: %s\n", error_text(r));
        if (r != 0)
                return EXIT_FAILURE;
        relay_config_free(config);
        SSL_CTX_free(tls);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        static Relay relay;
        Options o = { .config = NULL };
        int r;

        open_standard_fds();
        (void)setenv(X509_get_default_cert_file_env(), "/dev/null", true); /* libnats would trust all CAs of the host beside publish.ca */
        (void)setenv(X509_get_default_cert_dir_env(), "/dev/null", true);
        log_set_program("perfd-relay");
        r = parse_options(argc, argv, &o);
        if (r >= 0)
                return r;
        if (optind < argc && strcmp(argv[optind], "certificates") == 0)
                return make_certificates(argc, argv, &o);
        if (optind < argc) {
                fprintf(stderr, "perfd-relay: unexpected argument %s\n%s", QUOTE(argv[optind]), usage);
                return EXIT_USAGE;
        }
        if (o.server || o.client || o.perfd)
                return fail_usage("--server, --client and --perfd are for certificates");
        if (!o.config)
                return fail_usage("--config FILE is needed");
        if (o.check)
                return check(o.config);
        r = relay_start(&relay, o.config);
        if (r == 0)
                r = relay_run(&relay);
        if (r < 0)
                log_print(LOG_ERR, MESSAGE_FAILED, "%s", error_text(r));
        relay_stop(&relay);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
