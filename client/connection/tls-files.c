/*
 * The files that a client shows itself with, and those that it trusts. They are read at each connecting, so that renewed ones are taken.
 * Who may read a key is judged as libpq(3) of PostgreSQL does it.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/connection/tls-connect.h"

static bool set_paths(perfd_client *c, char *ca, char *certificate, char *key) {
        free(c->ca);
        free(c->certificate);
        free(c->key);
        c->ca = ca;
        c->certificate = certificate;
        c->key = key;
        return ca && certificate && key;
}

void client_forget_tls(perfd_client *c) {
        (void)set_paths(c, NULL, NULL, NULL);
}

int perfd_client_set_tls_files(perfd_client *c, const char *ca, const char *certificate, const char *key) {
        if (!ca || !*ca || !certificate || !*certificate || !key || !*key)
                return client_fail(c, PERFD_E_INVALID, "bad-path", "TLS needs three files: of the CA, of the certificate and of its "
                                   "key");
        return set_paths(c, strdup(ca), strdup(certificate), strdup(key)) ? 0 : client_fail_memory(c);
}

static char *join(const char *directory, const char *name) {
        char *path;

        return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

int perfd_client_set_tls(perfd_client *c, const char *directory) {
        if (!directory || !*directory)
                return client_fail(c, PERFD_E_INVALID, "bad-path", "TLS needs a directory that has ca.crt, client.crt and client.key");
        return set_paths(c, join(directory, "ca.crt"), join(directory, "client.crt"), join(directory, "client.key"))
                       ? 0
                       : client_fail_memory(c);
}

static int fail_file(perfd_client *c, const char *path, int error) {
        if (error == ENOENT)
                return client_fail(c, PERFD_E_INVALID, "no-certificate", "%s does not exist: tls:// needs the certificate of the "
                                   "relay's CA, a certificate of that CA for this client, and its key (ca.crt, client.crt, "
                                   "client.key), which `perfd-relay certificates` makes", path);
        return client_fail(c, error == ENOMEM ? -ENOMEM : PERFD_E_INVALID, "no-certificate", "%s cannot be read: %s", path,
                           strerror(error));
}

/* Opens what has to be a file, and not one that waits for a writer. */
static int open_file(perfd_client *c, const char *path, struct stat *ret_stat, int *ret_fd) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = fd < 0 ? errno : 0;

        if (error == 0 && fstat(fd, ret_stat) < 0)
                error = errno;
        else if (error == 0 && S_ISDIR(ret_stat->st_mode))
                error = EISDIR;
        else if (error == 0 && !S_ISREG(ret_stat->st_mode))
                error = EINVAL;
        if (error == 0) {
                *ret_fd = fd;
                return 0;
        }
        if (fd >= 0)
                close(fd);
        return fail_file(c, path, error);
}

static int check_file(perfd_client *c, const char *path) {
        struct stat file;
        int fd, r = open_file(c, path, &file, &fd);

        if (r == 0)
                close(fd);
        return r;
}

/* root's own may be for a group of users. */
static int check_mode(perfd_client *c, const struct stat *file) {
        mode_t others = file->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;

        if ((file->st_mode & others) == 0)
                return 0;
        return client_fail(c, PERFD_E_INVALID, "readable-key", "%s has mode %03o, by which others can use it: `chmod 600 %s`; if they "
                           "may have read it, have another certificate made", c->key, file->st_mode & 07777u, c->key);
}

/* Nobody is asked at a terminal that may not be ours. */
static int no_passphrase(char *to, int size, int is_for_writing, void *userdata) {
        *(bool *)userdata = true;
        return -1;
}

static int take_key(perfd_client *c, SSL_CTX *context, int fd) {
        BIO *b = BIO_new_fd(fd, BIO_NOCLOSE);
        bool is_encrypted = false;
        EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, &is_encrypted) : NULL;
        int r = 0;

        if (!b)
                r = client_fail_memory(c);
        else if (is_encrypted)
                r = client_fail(c, PERFD_E_INVALID, "bad-key", "%s is encrypted: a key without a passphrase is needed, which `openssl "
                                "pkey -in %s` makes of it", c->key, c->key);
        else if (!key)
                r = client_fail(c, PERFD_E_INVALID, "bad-key", "%s has no private key in PEM", c->key);
        else if (SSL_CTX_use_PrivateKey(context, key) != 1)
                r = client_fail(c, PERFD_E_INVALID, "wrong-key", "%s is not the key of the certificate %s: both have to be made "
                                "together", c->key, c->certificate);
        EVP_PKEY_free(key);
        BIO_free(b);
        return r;
}

static int load_key(perfd_client *c, SSL_CTX *context) {
        struct stat file;
        int fd, r = open_file(c, c->key, &file, &fd);

        if (r != 0)
                return r;
        r = check_mode(c, &file);
        if (r == 0)
                r = take_key(c, context, fd);
        close(fd);
        return r;
}

static int load(perfd_client *c, SSL_CTX *context) {
        int r = check_file(c, c->ca);

        if (r == 0 && SSL_CTX_load_verify_file(context, c->ca) != 1)
                r = client_fail(c, PERFD_E_INVALID, "bad-ca", "%s has no certificate in PEM", c->ca);
        if (r == 0)
                r = check_file(c, c->certificate);
        if (r == 0 && SSL_CTX_use_certificate_chain_file(context, c->certificate) != 1)
                r = client_fail(c, PERFD_E_INVALID, "bad-certificate", "%s has no certificate in PEM", c->certificate);
        return r == 0 ? load_key(c, context) : r;
}

int client_load_tls(perfd_client *c, SSL_CTX **ret_context) {
        SSL_CTX *context;
        int r;

        if (!c->ca || !c->certificate || !c->key)
                return client_fail(c, PERFD_E_INVALID, "no-certificate", "tls:// needs certificates, and this program has named none: "
                                   "perfd_client_set_tls() does");
        ERR_clear_error();
        context = SSL_CTX_new(TLS_client_method());
        if (context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
            SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION)) {
                (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
                r = load(c, context);
        } else
                r = client_fail_memory(c);
        ERR_clear_error();
        if (r == 0)
                *ret_context = context;
        else
                SSL_CTX_free(context);
        return r;
}
