/*
 * Keys of P-256, which every TLS 1.3 has. What is made is for a trial: the key of the CA lies beside the others, and whoever has it can
 * make more clients.
 */
#include "client/relay/certificates.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/relay/tls-files.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#define DAY (24 * 3600)
#define CA_DAYS 3650
#define CERTIFICATE_DAYS 825
#define NAME_MAX_BYTES 64 /* RFC 5280, ub-common-name */

static const char *const files[] = { "ca.crt", "ca.key", "server.crt", "server.key", "client.crt", "client.key", "relay.yaml" };

typedef struct Identity {
        X509 *certificate;
        EVP_PKEY *key;
} Identity;

static void identity_deinit(Identity *i) {
        X509_free(i->certificate);
        EVP_PKEY_free(i->key);
}

/* ---- certificates ------------------------------------------------------------------------------------------------ */

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value) {
        X509_EXTENSION *extension;
        X509V3_CTX context;
        bool is_added;

        X509V3_set_ctx_nodb(&context);
        X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
        extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
        is_added = extension && X509_add_ext(x, extension, -1) == 1;
        X509_EXTENSION_free(extension);
        return is_added;
}

static bool set_serial(X509 *x) {
        unsigned char bytes[16];
        BIGNUM *number;
        bool is_set;

        if (RAND_bytes(bytes, sizeof(bytes)) != 1)
                return false;
        bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of one length */
        number = BN_bin2bn(bytes, sizeof(bytes), NULL);
        is_set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
        BN_free(number);
        return is_set;
}

static bool set_name(X509 *x, X509 *issuer, const char *name) {
        X509_NAME *subject = X509_get_subject_name(x);

        return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) == 1 &&
               X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1;
}

static bool is_address(const char *name) {
        unsigned char address[sizeof(struct in6_addr)];

        return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool set_extensions(X509 *x, X509 *issuer, const char *name, const char *usage) {
        char names[NAME_MAX_BYTES + 8];

        if (!add_extension(x, issuer, NID_subject_key_identifier, "hash"))
                return false;
        if (!usage)
                return add_extension(x, issuer, NID_basic_constraints, "critical,CA:TRUE") &&
                       add_extension(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
        (void)snprintf(names, sizeof(names), "%s:%s", is_address(name) ? "IP" : "DNS", name);
        return add_extension(x, issuer, NID_authority_key_identifier, "keyid") &&
               add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
               add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
               add_extension(x, issuer, NID_ext_key_usage, usage) && add_extension(x, issuer, NID_subject_alt_name, names);
}

/* issuer NULL: a CA, signed by itself. */
static bool identity_make(Identity *ret, const Identity *issuer, const char *name, const char *usage) {
        X509 *x = ret->certificate = X509_new();
        long days = usage ? CERTIFICATE_DAYS : CA_DAYS;

        ret->key = EVP_EC_gen("P-256");
        issuer = issuer ? issuer : ret;
        return x && ret->key && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) && set_name(x, issuer->certificate, name) &&
               X509_gmtime_adj(X509_getm_notBefore(x), -3600) && /* a clock that is behind is no reason */
               X509_gmtime_adj(X509_getm_notAfter(x), days * DAY) && X509_set_pubkey(x, ret->key) == 1 &&
               set_extensions(x, issuer->certificate, name, usage) && X509_sign(x, issuer->key, EVP_sha256()) > 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static FILE *create(int directory, const char *name, mode_t mode) {
        _cleanup_close_ int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

        if (f)
                (void)TAKE_FD(fd);
        return f;
}

/* What was made of it is still there if that fails: it is said, and nothing of it is used. */
static bool finish(FILE *f, bool is_written) {
        is_written = is_written && fflush(f) == 0 && !ferror(f);
        return fclose(f) == 0 && is_written;
}

static bool write_identity(int directory, const char *certificate, const char *key, const Identity *i) {
        FILE *f = create(directory, certificate, 0644);

        if (!f || !finish(f, PEM_write_X509(f, i->certificate) == 1))
                return false;
        f = create(directory, key, 0600);
        return f && finish(f, PEM_write_PrivateKey(f, i->key, NULL, NULL, 0, NULL, NULL) == 1);
}

static bool write_config(int directory, const char *client, const char *perfd) {
        FILE *f = create(directory, "relay.yaml", 0644);

        if (!f)
                return false;
        fprintf(f,
                "# relay.yaml(5), for a trial: one client, which may read everything\n"
                "version: 1\n"
                "perfd: { stream: '%s/stream.sock' }\n"
                "listen: { tls: ['127.0.0.1:7443'], certificate: server.crt, key: server.key, ca: ca.crt }\n"
                "clients:\n"
                "  - { name: '%s', events: ['*'], raw: true }\n"
                "# To add events, too, as `perfctl record -F 99`, report, flame and top do, in the place of the lines of perfd and of the client:\n"
                "# perfd: { stream: '%s/stream.sock', control: '%s/control.sock' }\n"
                "#   - { name: '%s', control: true }\n",
                perfd, client, perfd, perfd, client);
        return finish(f, true);
}

static bool write_all(int directory, const char *server, const char *client, const char *perfd) {
        _cleanup_(identity_deinit) Identity ca = { .key = NULL }, of_server = { .key = NULL }, of_client = { .key = NULL };

        errno = 0;
        return identity_make(&ca, NULL, "perfd-relay trial CA", NULL) && identity_make(&of_server, &ca, server, "serverAuth") &&
               identity_make(&of_client, &ca, client, "clientAuth") && write_identity(directory, "ca.crt", "ca.key", &ca) &&
               write_identity(directory, "server.crt", "server.key", &of_server) &&
               write_identity(directory, "client.crt", "client.key", &of_client) && write_config(directory, client, perfd);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* Letters that mean nothing in a glob, in YAML or in what OpenSSL reads names from. */
static bool name_is_usable(const char *option, const char *name) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        bool is_usable = *name && strlen(name) <= NAME_MAX_BYTES && (strspn(name, letters) == strlen(name) || is_address(name));

        if (!is_usable)
                fprintf(stderr, "perfd-relay: %s: found %s, expected an address, or at most %d letters, digits, '.', '-' and '_'\n", option,
                        QUOTE(name), NAME_MAX_BYTES);
        return is_usable;
}

static bool path_is_usable(const char *perfd) {
        bool is_usable = perfd[0] == '/' && strlen(perfd) <= 90 && !strpbrk(perfd, "'\n");

        if (!is_usable)
                fprintf(stderr, "perfd-relay: --perfd: found %s, expected the absolute path of a directory, of at most 90 bytes\n",
                        QUOTE(perfd));
        return is_usable;
}

static bool is_free(int directory, const char *path) {
        struct stat st;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (fstatat(directory, files[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
                        fprintf(stderr, "perfd-relay: %s/%s exists and is not overwritten: nothing was made; name another directory, or "
                                "remove it\n", path, files[i]);
                        return false;
                }
        return true;
}

/* With the directories that it is to be in. False, errno: it is not there. */
static bool make_directories(const char *path) {
        char part[PATH_MAX];

        for (const char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
                if (end - path >= PATH_MAX) {
                        errno = ENAMETOOLONG;
                        return false;
                }
                (void)snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
                if (mkdir(part, 0700) < 0 && errno != EEXIST)
                        return false;
        }
        return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Where `perfctl` finds perfd, too. */
static const char *default_perfd(char to[static PATH_MAX]) {
        const char *socket = getenv("PERFD_SOCKET"), *end = socket ? strrchr(socket, '/') : NULL;

        if (!end || end == socket || end - socket >= PATH_MAX)
                return "/run/perfd";
        (void)snprintf(to, PATH_MAX, "%.*s", (int)(end - socket), socket);
        return to;
}

int certificates_make(const char *path, const char *server, const char *client, const char *perfd) {
        _cleanup_close_ int directory = -1;
        char absolute[PATH_MAX], of_socket[PATH_MAX], text[256];

        perfd = perfd ? perfd : default_perfd(of_socket);
        if (!*path) {
                fprintf(stderr, "perfd-relay: the name of the directory is empty\n");
                return 2;
        }
        if (!name_is_usable("--server", server) || !name_is_usable("--client", client) || !path_is_usable(perfd))
                return 2;
        if (!make_directories(path)) {
                fprintf(stderr, "perfd-relay: %s cannot be created: %m\n", QUOTE(path));
                return EXIT_FAILURE;
        }
        directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0 || !realpath(path, absolute)) {
                fprintf(stderr, "perfd-relay: %s cannot be opened: %m\n", QUOTE(path));
                return EXIT_FAILURE;
        }
        if (!is_free(directory, path))
                return EXIT_FAILURE;
        if (!write_all(directory, server, client, perfd)) {
                fprintf(stderr, "perfd-relay: certificates in %s could not be made: %s\n", QUOTE(path),
                        errno != 0 ? strerror(errno) : tls_error_text(text));
                return EXIT_FAILURE;
        }
        printf("made in %s: a CA, a certificate for the server %s, one for the client %s, and relay.yaml\n"
               "start the relay:  perfd-relay --config %s/relay.yaml\n"
               "read a stream:    perfctl --tls %s --host tls://%s%s%s:7443 status\n",
               absolute, server, client, absolute, absolute, strchr(server, ':') ? "[" : "", server, strchr(server, ':') ? "]" : "");
        return EXIT_SUCCESS;
}
