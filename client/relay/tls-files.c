/*
 * What would only be seen when the first client comes is looked at here: a CA that is none, a CRL that no CA of the file has signed, a
 * key that is another certificate's. OpenSSL would take each of them and then refuse everybody.
 */
#include "client/relay/tls-files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>

#include "config/parse/file.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

#define FILE_MAX (4 << 20) /* bytes: more CAs than a host has */

const char *tls_error_text(char to[static 256]) {
        unsigned long error = ERR_peek_last_error();
        const char *reason = error != 0 ? ERR_reason_error_string(error) : NULL;

        (void)snprintf(to, 256, "%s", reason ? reason : error != 0 ? "an error without a name" : "nothing in it");
        ERR_clear_error();
        return to;
}

ConfigPlace tls_file_place(const TlsFiles *f, const char *key) {
        char pattern[64];

        (void)snprintf(pattern, sizeof(pattern), "%s.%s", f->section, key);
        return relay_config_place(f->config, pattern);
}

int tls_file_read(const TlsFiles *f, const char *key, const char *path, ConfigDiagnostics *m, char **ret_bytes, size_t *ret_length) {
        ConfigDiagnostics of_file = CONFIG_DIAGNOSTICS_NULL;
        struct stat st;
        int r = config_file_read(&of_file, (ConfigPlace){ .path = path }, FILE_MAX, ret_bytes, ret_length, &st);

        if (r > 0 && of_file.n_items > 0) /* where the path is written */
                config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s: %s", f->section, key, QUOTE(path), of_file.items[0].text);
        config_diagnostics_deinit(&of_file);
        if (r == 0 && *ret_length > FILE_MAX) {
                config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s is longer than 4MiB", f->section, key, QUOTE(path));
                r = REFUSED_INVALID;
        }
        return r;
}

/* NULL with *ret 0: there is none to read, which the table of keys has said where one is needed. */
static BIO *file_open(const TlsFiles *f, const char *key, const char *path, char **ret_bytes, ConfigDiagnostics *m, int *ret) {
        size_t length = 0;
        BIO *bio = NULL;

        *ret = path ? tls_file_read(f, key, path, m, ret_bytes, &length) : 0;
        if (!path || *ret != 0)
                return NULL;
        bio = BIO_new_mem_buf(*ret_bytes, (int)length);
        if (!bio)
                *ret = error_origin(-ENOMEM);
        return bio;
}

static void bio_freep(BIO **bio) {
        BIO_free(*bio);
}

static int refuse_file(ConfigDiagnostics *m, const TlsFiles *f, const char *key, const char *path, const char *what) {
        char text[256];

        config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s %s: %s", f->section, key, QUOTE(path), what, tls_error_text(text));
        return REFUSED_INVALID;
}

/* When an alert is still in time; of what lives shortly, as a CRL, the last third: else each would be one. */
#define SOON_DAYS 30

static int days_between(const ASN1_TIME *from, const ASN1_TIME *to) {
        int days = 0, seconds = 0;

        return ASN1_TIME_diff(&days, &seconds, from, to) == 1 ? days : 0; /* NULL is now */
}

static int check_time(ConfigDiagnostics *m, const TlsFiles *f, const char *key, const char *what, const ASN1_TIME *begin,
                      const ASN1_TIME *end) {
        const char *const effect = strcmp(key, "certificate") == 0
                                           ? (f->is_client ? "servers refuse the relay" : "every client refuses the relay")
                                           : (f->is_client ? "servers of this CA are refused" : "clients of this CA are refused");
        const bool is_over = end && X509_cmp_current_time(end) < 0, is_early = X509_cmp_current_time(begin) > 0;
        char text[300];

        if (!is_over && !is_early) {
                const int left = end ? days_between(NULL, end) : SOON_DAYS, life = end ? days_between(begin, end) : 0;

                if (end && left < SOON_DAYS && left <= life / 3)
                        config_diagnostics_add_warning(m, tls_file_place(f, key), "%s.%s: %s expires in %d day%s: replace it and reload",
                                                       f->section, key, what, left, left == 1 ? "" : "s");
                return 0;
        }
        (void)snprintf(text, sizeof(text), "%s: %s", is_over ? "has expired" : "is not valid yet", effect);
        if (f->config->takes_expired) {
                config_diagnostics_add_warning(m, tls_file_place(f, key), "%s.%s: %s %s", f->section, key, what, text);
                return 0;
        }
        config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s %s", f->section, key, what, text);
        return REFUSED_INVALID;
}

static int check_certificate_time(ConfigDiagnostics *m, const TlsFiles *f, const char *key, const char *path, unsigned number,
                                  const X509 *x) {
        char what[QUOTE_SIZE + 40];

        if (number == 0)
                (void)snprintf(what, sizeof(what), "%s", QUOTE(path));
        else
                (void)snprintf(what, sizeof(what), "certificate %u of %s", number, QUOTE(path));
        return check_time(m, f, key, what, X509_get0_notBefore(x), X509_get0_notAfter(x));
}

/* The relay's own, and behind it those that lead to its CA. */
int tls_load_certificate(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_(bio_freep) BIO *bio = NULL;
        X509 *x;
        int r;

        bio = file_open(f, "certificate", f->certificate, &bytes, m, &r);
        if (!bio)
                return r;
        ERR_clear_error();
        x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (!x)
                return refuse_file(m, f, "certificate", f->certificate, "is no certificate in PEM format");
        r = check_certificate_time(m, f, "certificate", f->certificate, 0, x);
        if (SSL_CTX_use_certificate(context, x) != 1)
                r = refuse_file(m, f, "certificate", f->certificate, "cannot be used");
        X509_free(x);
        for (unsigned n = 2; r == 0 && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); n++) {
                r = check_certificate_time(m, f, "certificate", f->certificate, n, x);
                if (SSL_CTX_add0_chain_cert(context, x) != 1) {
                        X509_free(x);
                        r = refuse_file(m, f, "certificate", f->certificate, "has a chain that cannot be used");
                }
        }
        ERR_clear_error(); /* the end of the file is one */
        return r;
}

/* A key with a passphrase: there is nobody to ask. */
static int no_passphrase(char *to, int size, int writing, void *userdata) {
        return -1;
}

/* One that others can read is nobody's secret. By the group it may be read: that is how a service of its own user gets it. */
int tls_check_secret_mode(const TlsFiles *f, const char *key, const char *path, const char *what, ConfigDiagnostics *m) {
        struct stat st;

        if (stat(path, &st) < 0 || (st.st_mode & 027) == 0)
                return 0;
        config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s has mode %04o: others can read or change it; make another %s if they may "
                               "have done so, and `chmod 0600` the file, or 0640 with the group of who runs the relay",
                               f->section, key, QUOTE(path), (unsigned)(st.st_mode & 07777), what);
        return REFUSED_INVALID;
}

int tls_load_key(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_(bio_freep) BIO *bio = NULL;
        EVP_PKEY *key;
        int r;

        bio = file_open(f, "key", f->key, &bytes, m, &r);
        if (!bio)
                return r;
        r = tls_check_secret_mode(f, "key", f->key, "key and certificate", m);
        ERR_clear_error();
        key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
        if (!key)
                return refuse_file(m, f, "key", f->key, "is no private key in PEM format without a passphrase");
        if (SSL_CTX_get0_certificate(context) && X509_check_private_key(SSL_CTX_get0_certificate(context), key) != 1) {
                config_diagnostics_add(m, tls_file_place(f, "key"), "%s.key: %s is not the key of the certificate %s", f->section,
                                       QUOTE(f->key), QUOTE(f->certificate));
                r = REFUSED_INVALID;
        } else if (SSL_CTX_use_PrivateKey(context, key) != 1) {
                r = refuse_file(m, f, "key", f->key, "cannot be used");
        }
        ERR_clear_error();
        EVP_PKEY_free(key);
        return r;
}

static int add_ca(SSL_CTX *context, const TlsFiles *f, X509 *x, unsigned number, ConfigDiagnostics *m) {
        int r;

        if (X509_check_ca(x) == 0) {
                config_diagnostics_add(m, tls_file_place(f, "ca"), "%s.ca: certificate %u of %s is not that of a CA: name the "
                                       "certificate that has signed those of %s",
                                       f->section, number, QUOTE(f->ca), f->is_client ? "servers" : "clients");
                return REFUSED_INVALID;
        }
        r = check_certificate_time(m, f, "ca", f->ca, number, x);
        if (r != 0)
                return r;
        return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), x) == 1 && SSL_CTX_add_client_CA(context, x) == 1
                       ? 0
                       : error_origin(-ENOMEM);
}

int tls_load_cas(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_(bio_freep) BIO *bio = NULL;
        unsigned n = 0;
        X509 *x;
        int r;

        bio = file_open(f, "ca", f->ca, &bytes, m, &r);
        if (!bio)
                return r;
        ERR_clear_error();
        while (r == 0 && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
                r = add_ca(context, f, x, ++n, m);
                X509_free(x);
        }
        if (r == 0 && n == 0)
                r = refuse_file(m, f, "ca", f->ca, "has no certificate in PEM format");
        ERR_clear_error();
        return r;
}

/* The CA of the file whose CRL it is; NULL: none of them. */
static X509 *issuer_of(const STACK_OF(X509_OBJECT) *objects, X509_CRL *crl) {
        for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
                X509 *x = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));

                if (x && X509_NAME_cmp(X509_get_subject_name(x), X509_CRL_get_issuer(crl)) == 0 &&
                    X509_CRL_verify(crl, X509_get0_pubkey(x)) == 1)
                        return x;
        }
        return NULL;
}

static int add_crl(SSL_CTX *context, const TlsFiles *f, X509_CRL *crl, unsigned number, ConfigDiagnostics *m) {
        X509_STORE *store = SSL_CTX_get_cert_store(context);
        char what[QUOTE_SIZE + 20];
        int r;

        if (!issuer_of(X509_STORE_get0_objects(store), crl)) {
                config_diagnostics_add(m, tls_file_place(f, "crl"), "%s.crl: CRL %u of %s was not signed by a CA of %s", f->section,
                                       number, QUOTE(f->crl), QUOTE(f->ca ? f->ca : "ca"));
                return REFUSED_INVALID;
        }
        (void)snprintf(what, sizeof(what), "CRL %u of %s", number, QUOTE(f->crl));
        r = check_time(m, f, "crl", what, X509_CRL_get0_lastUpdate(crl), X509_CRL_get0_nextUpdate(crl));
        if (r != 0)
                return r;
        return X509_STORE_add_crl(store, crl) == 1 ? 0 : error_origin(-ENOMEM);
}

int tls_load_crls(SSL_CTX *context, const TlsFiles *f, ConfigDiagnostics *m) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_(bio_freep) BIO *bio = NULL;
        unsigned n = 0;
        X509_CRL *crl;
        int r;

        bio = file_open(f, "crl", f->crl, &bytes, m, &r);
        if (!bio)
                return r;
        ERR_clear_error();
        while (r == 0 && (crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL))) {
                r = add_crl(context, f, crl, ++n, m);
                X509_CRL_free(crl);
        }
        if (r == 0 && n == 0)
                r = refuse_file(m, f, "crl", f->crl, "has no CRL in PEM format");
        ERR_clear_error();
        /* of each certificate between the client and the CA */
        X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
        return r;
}
