/*
 * Each server is tried with options of its own, because libnats knows TLS and the name in a certificate for all of them only. What says
 * who the relay is goes by options too, so that no URL of libnats and no text of it has a secret.
 *
 * Its write deadline is not used: it makes the socket non-blocking, and then two threads of it take each other's error of TLS for their
 * own. nats.c ends what takes too long.
 */
#include "client/relay/publish/nats-connect.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "client/relay/publish/secret-file.h"
#include "config/text/words.h"

#define CONNECT_TIMEOUT_MSEC 2000
#define PING_MSEC 2000
#define PENDING_MAX 4096 /* answers that wait; libnats takes so many KiB of them */

static const char *status_advice(natsStatus s, const ServerUrl *url, const PublishAccess *a) {
        switch (s) {
        case NATS_CONNECTION_AUTH_FAILED:
                return "compare publish.credentials, user and password-file, or token-file, with the users in the configuration of the server";
        case NATS_SECURE_CONNECTION_WANTED:
                return "the server has no TLS: write nats:// if that is meant";
        case NATS_SSL_ERROR:
                return a->ca ? "compare the certificate of the server with publish.ca and the name in publish.servers"
                             : "the server wants TLS: name its CA in publish.ca, and write tls://";
        case NATS_PROTOCOL_ERROR:
        case NATS_IO_ERROR:
        case NATS_CONNECTION_CLOSED: /* a server that verifies clients ends TLS 1.3 only when the client thinks that it is connected */
                return url->is_tls && !a->certificate ? "does the server ask for a certificate? publish.certificate names one"
                       : url->is_tls                  ? "does the server accept the CA of publish.certificate? Its log says so"
                                                      : "";
        case NATS_NO_SERVER:
                return "nothing accepts connections there: is nats-server running, and is the address right?";
        case NATS_TIMEOUT:
                return "it does not answer: is it stopped, or is something else at this address?";
        default:
                return "";
        }
}

void nats_explain(natsStatus status, const char *what, char text[static NATS_TEXT_SIZE]) {
        const char *detail = nats_GetLastError(NULL);

        (void)snprintf(text, NATS_TEXT_SIZE, "%s: %s%s%s", what, natsStatus_GetText(status), detail && *detail ? ", " : "", detail ? detail : "");
}

static bool fail(natsStatus s, const ServerUrl *url, const PublishAccess *a, char text[static NATS_TEXT_SIZE]) {
        const char *detail = nats_GetLastError(NULL), *advice = status_advice(s, url, a);
        char reason[110]; /* so that the advice has room */

        (void)snprintf(reason, sizeof(reason), "%s%s%s", natsStatus_GetText(s), detail && *detail ? ", " : "", detail ? detail : "");
        (void)snprintf(text, NATS_TEXT_SIZE, "%.80s: %s%s%s", url->address, reason, *advice ? ": " : "", advice);
        return false;
}

static natsStatus set_general(natsOptions *o, const ServerUrl *url, const NatsCallbacks *callbacks) {
        char address[sizeof(url->address)];
        natsStatus s;

        (void)snprintf(address, sizeof(address), strchr(url->host, ':') ? "nats://[%s]:%u" : "nats://%s:%u", url->host, url->port);
        s = natsOptions_SetURL(o, address);
        if (s == NATS_OK)
                s = natsOptions_SetIgnoreDiscoveredServers(o, true); /* they were not named */
        if (s == NATS_OK)
                s = natsOptions_SetName(o, "perfd-relay");
        if (s == NATS_OK)
                s = natsOptions_SetAllowReconnect(o, false);
        if (s == NATS_OK)
                s = natsOptions_SetTimeout(o, CONNECT_TIMEOUT_MSEC);
        if (s == NATS_OK)
                s = natsOptions_SetPingInterval(o, PING_MSEC);
        if (s == NATS_OK)
                s = natsOptions_SetMaxPingsOut(o, 2);
        if (s == NATS_OK)
                s = natsOptions_SetMaxPendingMsgs(o, PENDING_MAX);
        if (s == NATS_OK)
                s = natsOptions_SetSendAsap(o, true); /* a message is a packet: another thread that waits for more would only cost */
        if (s == NATS_OK)
                s = natsOptions_SetClosedCB(o, callbacks->closed, callbacks->userdata);
        return s == NATS_OK ? natsOptions_SetErrorHandler(o, callbacks->error, callbacks->userdata) : s;
}

/* Also for nats://, whose server may require TLS. */
static natsStatus set_tls(natsOptions *o, const ServerUrl *url, const PublishAccess *a) {
        natsStatus s = url->is_tls ? natsOptions_SetSecure(o, true) : NATS_OK;

        if (s == NATS_OK && a->ca)
                s = natsOptions_LoadCATrustedCertificates(o, a->ca);
        if (s == NATS_OK && a->certificate)
                s = natsOptions_LoadCertificatesChain(o, a->certificate, a->key);
        if (s == NATS_OK && (url->is_tls || a->ca))
                s = natsOptions_SetExpectedHostname(o, url->host);
        return s;
}

static const char *read_file(const char *path, char to[static SECRET_SIZE], char text[static NATS_TEXT_SIZE]) {
        const char *no = secret_file_read(path, to);

        if (no)
                (void)snprintf(text, NATS_TEXT_SIZE, "%s: %s", QUOTE(path), no);
        return no;
}

/* NATS_OK; NATS_ERR: text says it; another one is of libnats. `secret` is overwritten by the caller. */
static natsStatus set_identity(natsOptions *o, const ServerUrl *url, const PublishAccess *a, char secret[static SECRET_SIZE],
                               char text[static NATS_TEXT_SIZE]) {
        if (url->has_user_info)
                return url->token[0] ? natsOptions_SetToken(o, url->token) : natsOptions_SetUserInfo(o, url->user, url->password);
        if (a->credentials)
                return natsOptions_SetUserCredentialsFromFiles(o, a->credentials, NULL);
        if (a->user)
                return read_file(a->password_file, secret, text) ? NATS_ERR : natsOptions_SetUserInfo(o, a->user, secret);
        if (a->token_file)
                return read_file(a->token_file, secret, text) ? NATS_ERR : natsOptions_SetToken(o, secret);
        return NATS_OK;
}

static bool connect_with(natsOptions *o, const PublishAccess *a, const ServerUrl *url, const NatsCallbacks *callbacks, natsConnection **ret,
                         char text[static NATS_TEXT_SIZE]) {
        char secret[SECRET_SIZE] = "";
        natsStatus s = set_general(o, url, callbacks);

        text[0] = '\0';
        if (s == NATS_OK)
                s = set_tls(o, url, a);
        if (s == NATS_OK)
                s = set_identity(o, url, a, secret, text);
        OPENSSL_cleanse(secret, sizeof(secret));
        if (s == NATS_OK)
                s = natsConnection_Connect(ret, o);
        return s == NATS_OK || (text[0] ? false : fail(s, url, a, text));
}

bool nats_connect(const PublishAccess *a, const ServerUrl *url, const NatsCallbacks *callbacks, natsConnection **ret,
                  char text[static NATS_TEXT_SIZE]) {
        natsOptions *o = NULL;
        natsStatus s;
        bool is_fine;

        s = natsOptions_Create(&o);
        is_fine = s == NATS_OK ? connect_with(o, a, url, callbacks, ret, text) : fail(s, url, a, text);
        natsOptions_Destroy(o);
        return is_fine;
}
