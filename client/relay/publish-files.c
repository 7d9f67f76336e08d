/* What a server would refuse later, or what others of this host could take from the relay, is refused here: as of tls-files.c. */
#include "client/relay/publish-files.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "client/relay/publish/secret-file.h"
#include "client/relay/tls-files.h"
#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

#define JWT_BEGIN "-----BEGIN NATS USER JWT-----"
#define SEED_BEGIN "-----BEGIN USER NKEY SEED-----"

typedef struct SecretText {
        char *bytes;
        size_t length;
} SecretText;

static void secret_text_deinit(SecretText *t) {
        if (t->bytes)
                OPENSSL_cleanse(t->bytes, t->length);
        free(t->bytes);
}

static int refuse_file(const TlsFiles *f, const char *key, const char *path, const char *what, ConfigDiagnostics *m) {
        config_diagnostics_add(m, tls_file_place(f, key), "%s.%s: %s %s", f->section, key, QUOTE(path), what);
        return REFUSED_INVALID;
}

/* Read, and nobody else's. 0 with nothing in it: there is no such file. */
static int read_secret(const TlsFiles *f, const char *key, const char *path, const char *what, ConfigDiagnostics *m, SecretText *ret) {
        int r = path ? tls_file_read(f, key, path, m, &ret->bytes, &ret->length) : 0;

        return path && r == 0 ? tls_check_secret_mode(f, key, path, what, m) : r;
}

static int check_line(const TlsFiles *f, const char *key, const char *path, const char *what, ConfigDiagnostics *m) {
        _cleanup_(secret_text_deinit) SecretText t = { .bytes = NULL };
        char line[SECRET_SIZE];
        const char *no;
        int r = read_secret(f, key, path, what, m, &t);

        if (r != 0 || !path)
                return r;
        no = secret_take_line(t.bytes, t.length, line);
        OPENSSL_cleanse(line, sizeof(line));
        return no ? refuse_file(f, key, path, no, m) : 0;
}

/* What follows a line that begins with `begin`, up to the end of the next one. */
static bool has_block(const SecretText *t, const char *begin, const char *letters) {
        const char *at = memmem(t->bytes, t->length, begin, strlen(begin)), *end = t->bytes + t->length;

        if (!at)
                return false;
        at += strlen(begin);
        while (at < end && strchr("\r\n", *at))
                at++;
        return (size_t)(end - at) > strlen(letters) && memcmp(at, letters, strlen(letters)) == 0;
}

static int check_credentials(const TlsFiles *f, const char *path, ConfigDiagnostics *m) {
        _cleanup_(secret_text_deinit) SecretText t = { .bytes = NULL };
        int r = read_secret(f, "credentials", path, "user and seed", m, &t);

        if (r != 0 || !path)
                return r;
        if (!has_block(&t, JWT_BEGIN, "ey")) /* {" in base64 */
                return refuse_file(f, "credentials", path, "has no JWT of a user, expected a .creds file of NATS, with '" JWT_BEGIN "'", m);
        if (!has_block(&t, SEED_BEGIN, "SU"))
                return refuse_file(f, "credentials", path, "has no seed of a user, expected a .creds file of NATS, with '" SEED_BEGIN "'", m);
        return 0;
}

static int check_tls(const TlsFiles *f, ConfigDiagnostics *m) {
        int (*const load[])(SSL_CTX *, const TlsFiles *, ConfigDiagnostics *) = { tls_load_certificate, tls_load_key, tls_load_cas };
        SSL_CTX *context = SSL_CTX_new(TLS_client_method()); /* only to see whether they fit */
        int r = context ? 0 : error_origin(-ENOMEM), one;

        for (size_t i = 0; i < ARRAY_SIZE(load) && r >= 0; i++) {
                one = load[i](context, f, m);
                r = one != 0 ? one : r;
        }
        SSL_CTX_free(context);
        return r;
}

/* One that cannot be read has been refused. */
static int digest(PublishAccess *a, const TlsFiles *f) {
        const char *const paths[] = { a->ca, a->certificate, a->key, a->credentials, a->password_file, a->token_file };
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        bool is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;

        for (size_t i = 0; i < ARRAY_SIZE(paths) && is_fine; i++) {
                _cleanup_(secret_text_deinit) SecretText t = { .bytes = NULL };
                ConfigDiagnostics ignored = CONFIG_DIAGNOSTICS_NULL;

                is_fine = !paths[i] || tls_file_read(f, "", paths[i], &ignored, &t.bytes, &t.length) >= 0;
                is_fine = is_fine && EVP_DigestUpdate(context, &t.length, sizeof(t.length)) == 1 &&
                          (t.length == 0 || EVP_DigestUpdate(context, t.bytes, t.length) == 1);
                config_diagnostics_deinit(&ignored);
        }
        is_fine = is_fine && EVP_DigestFinal_ex(context, a->digest, NULL) == 1;
        EVP_MD_CTX_free(context);
        return is_fine ? 0 : error_origin(-ENOMEM);
}

int publish_files_check(RelayConfig *c, ConfigDiagnostics *m) {
        PublishAccess *a = &c->publish.access;
        const TlsFiles f = { .config = c, .section = "publish", .is_client = true, .certificate = a->certificate, .key = a->key, .ca = a->ca };
        int r[] = { check_tls(&f, m), check_credentials(&f, a->credentials, m), check_line(&f, "password-file", a->password_file, "password", m),
                    check_line(&f, "token-file", a->token_file, "token", m), digest(a, &f) };
        int worst = 0;

        for (size_t i = 0; i < ARRAY_SIZE(r); i++)
                worst = worst < 0 || r[i] == 0 ? worst : r[i];
        return worst;
}
