/*
 * Why a connection by TLS was refused, by this side or the other, and what to do. In TLS 1.3 the other side refuses a client's
 * certificate when this side takes the handshake for done: that is read where the greeting was awaited. What the other side has
 * written, such as the names of its certificate, is not trusted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/connection/client.h"
#include "client/connection/network.h"

#define SAID_MAX 300 /* bytes of what a certificate says */

static void make_printable(char *text) {
        for (; *text; text++)
                if (*text < ' ' || *text > '~')
                        *text = '?';
}

static void put_subject(char *to, size_t size, const X509 *certificate) {
        BIO *b = BIO_new(BIO_s_mem());
        int n = 0;

        if (b && certificate && X509_NAME_print_ex(b, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
                n = BIO_read(b, to, (int)size - 1);
        to[n > 0 ? n : 0] = '\0';
        BIO_free(b);
        make_printable(to);
}

static void put_time(char *to, size_t size, const ASN1_TIME *when) {
        struct tm tm;

        if (!ASN1_TIME_to_tm(when, &tm) || strftime(to, size, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
                (void)snprintf(to, size, "an unknown time");
}

static void put_name(char *to, size_t size, const GENERAL_NAME *name) {
        const ASN1_STRING *text = name->type == GEN_DNS ? name->d.dNSName : name->type == GEN_IPADD ? name->d.iPAddress : NULL;
        const unsigned char *bytes = text ? ASN1_STRING_get0_data(text) : NULL;
        int length = text ? ASN1_STRING_length(text) : 0;
        size_t n = strlen(to);
        char address[INET6_ADDRSTRLEN];

        if (!text || n >= size - 1)
                return;
        if (name->type == GEN_DNS)
                (void)snprintf(to + n, size - n, "%s%.*s", n > 0 ? ", " : "", length, (const char *)bytes);
        else if ((length == 4 || length == 16) && inet_ntop(length == 4 ? AF_INET : AF_INET6, bytes, address, sizeof(address)))
                (void)snprintf(to + n, size - n, "%s%s", n > 0 ? ", " : "", address);
}

/* The names and addresses that it is for. */
static void put_names(char *to, size_t size, const X509 *certificate) {
        GENERAL_NAMES *names = certificate ? X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;

        *to = '\0';
        for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
                put_name(to, size, sk_GENERAL_NAME_value(names, i));
        GENERAL_NAMES_free(names);
        make_printable(to);
        if (!*to)
                (void)snprintf(to, size, "no host by its subjectAltName");
}

/* --- what this side refuses --- */

static int fail_wrong_name(perfd_client *c) {
        const Tls *t = &c->tls;
        char names[SAID_MAX];

        put_names(names, sizeof(names), t->refused);
        return client_fail(c, PERFD_E_UNREACHABLE, "wrong-name", "%s: the certificate there is for %s, and not for %s: is this the "
                           "right host? Use one of these names, or have a certificate made that has this one", t->to, names, t->name);
}

static int fail_validity(perfd_client *c, bool is_too_late) {
        const Tls *t = &c->tls;
        char subject[SAID_MAX], when[64] = "an unknown time";

        put_subject(subject, sizeof(subject), t->refused);
        if (t->refused)
                put_time(when, sizeof(when), is_too_late ? X509_get0_notAfter(t->refused) : X509_get0_notBefore(t->refused));
        if (is_too_late)
                return client_fail(c, PERFD_E_UNREACHABLE, "expired", "%s: the certificate there (%s) has expired, at %s: it has to "
                                   "be renewed there, if the clock of this host is right", t->to, subject, when);
        return client_fail(c, PERFD_E_UNREACHABLE, "not-yet-valid", "%s: the certificate there (%s) is not yet valid, but from %s on: "
                           "is the clock of this host right, and that of the one where it was made?", t->to, subject, when);
}

static int fail_certificate(perfd_client *c) {
        const Tls *t = &c->tls;
        char subject[SAID_MAX];

        switch (t->refusal) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
                return fail_wrong_name(c);
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
                return fail_validity(c, t->refusal == X509_V_ERR_CERT_HAS_EXPIRED);
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
                put_subject(subject, sizeof(subject), t->refused);
                return client_fail(c, PERFD_E_UNREACHABLE, "unknown-ca", "%s: the certificate there (%s) is not of the CA in %s: is "
                                   "this the right host, and the ca.crt of its relay?", t->to, subject, c->ca);
        default:
                put_subject(subject, sizeof(subject), t->refused);
                return client_fail(c, PERFD_E_UNREACHABLE, "bad-certificate", "%s: the certificate there (%s) is not accepted: %s",
                                   t->to, subject, X509_verify_cert_error_string(t->refusal));
        }
}

/* --- what the other side refuses --- */

/* Of an alert that came: its number, else -1. */
static int alert_of(unsigned long said) {
        int reason = ERR_GET_REASON(said);

        return said != 0 && ERR_GET_LIB(said) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256
                       ? reason - SSL_AD_REASON_OFFSET
                       : -1;
}

/* Why a client's certificate is refused; NULL: the alert is about something else. */
static const char *refusal_of(int alert) {
        switch (alert) {
        case SSL_AD_CERTIFICATE_EXPIRED:
                return "it has expired, or the list of revoked certificates (CRL) there has";
        case SSL_AD_CERTIFICATE_REVOKED:
                return "it was revoked";
        case SSL_AD_UNKNOWN_CA:
                return "its CA is not the one of that relay";
        case SSL_AD_ACCESS_DENIED:
                return "no rule there permits it";
        case TLS13_AD_CERTIFICATE_REQUIRED:
                return "none was received";
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_DECRYPT_ERROR:
                return "it is not valid there";
        default:
                return NULL;
        }
}

static int fail_own_certificate(perfd_client *c, int code, const char *why) {
        const Tls *t = &c->tls;
        const X509 *own = SSL_get_certificate(t->ssl);
        char subject[SAID_MAX] = "", from[64] = "an unknown time", to[64] = "an unknown time";

        if (own) {
                put_subject(subject, sizeof(subject), own);
                put_time(from, sizeof(from), X509_get0_notBefore(own));
                put_time(to, sizeof(to), X509_get0_notAfter(own));
        }
        return client_fail(c, code, "certificate-refused", "%s does not accept the certificate of this client: %s. It is %s (%s), "
                           "valid from %s to %s; the relay's log says more", t->to, why, c->certificate ? c->certificate : "that of "
                           "another connection", subject, from, to);
}

static int fail_version(perfd_client *c) {
        return client_fail(c, PERFD_E_UNREACHABLE, "tls-version", "%s: the server there does not speak TLS 1.3: is this the port of "
                           "perfd-relay?", c->tls.to);
}

static int fail_alert(perfd_client *c, int alert) {
        const char *why = refusal_of(alert);

        if (why)
                return fail_own_certificate(c, PERFD_E_UNREACHABLE, why);
        switch (alert) {
        case SSL_AD_PROTOCOL_VERSION:
                return fail_version(c);
        case SSL_AD_NO_APPLICATION_PROTOCOL:
                return client_fail(c, PERFD_E_UNREACHABLE, "no-protocol", "%s: the server there does not speak perfd's protocol (ALPN "
                                   "perfd/1): is this the port of perfd-relay?", c->tls.to);
        default:
                return client_fail(c, PERFD_E_UNREACHABLE, "refused", "%s: the server there refuses the connection (TLS alert %d, "
                                   "%s): its log says why", c->tls.to, alert, SSL_alert_desc_string_long(alert));
        }
}

/* --- */

static const char *words_of(unsigned long said) {
        const char *words = ERR_reason_error_string(said);

        return words ? words : "an error without a name";
}

int client_fail_tls(perfd_client *c) {
        const Tls *t = &c->tls;
        int alert = alert_of(t->said), reason = ERR_GET_REASON(t->said);

        if (t->refusal != X509_V_OK)
                return fail_certificate(c);
        if (alert >= 0)
                return fail_alert(c, alert);
        if (t->said != 0 && (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_SSL_VERSION))
                return fail_version(c);
        if (t->said != 0)
                return client_fail(c, PERFD_E_UNREACHABLE, "not-tls", "%s: what is there does not speak TLS (%s): is this the port of "
                                   "perfd-relay?", t->to, words_of(t->said));
        return client_fail(c, PERFD_E_UNREACHABLE, "closed", "%s: the connection was closed before there was an answer%s%s: that is "
                           "no perfd-relay, or it has no room, or its log says why", t->to, t->error ? ": " : "",
                           t->error ? strerror(t->error) : "");
}

int client_fail_tls_closed(perfd_client *c) {
        const Tls *t = &c->tls;
        int alert = alert_of(t->said);

        if (!c->greeting)
                return client_fail_tls(c);
        if (refusal_of(alert))
                return fail_own_certificate(c, PERFD_E_CLOSED, refusal_of(alert));
        if (alert >= 0)
                return client_fail(c, PERFD_E_CLOSED, "closed", "%s has ended the connection (TLS alert %d, %s): its log says why",
                                   t->to, alert, SSL_alert_desc_string_long(alert));
        if (t->said != 0)
                return client_fail(c, PERFD_E_PROTOCOL, "not-tls", "the connection to %s has ended, because what came is not what was "
                                   "sent (%s)", t->to, words_of(t->said));
        if (t->error == ETIMEDOUT)
                return client_fail(c, PERFD_E_CLOSED, "silent", "the connection to %s has ended: nothing was heard from there for up "
                                   "to %d s", t->to, NETWORK_SILENCE);
        return client_fail(c, PERFD_E_CLOSED, "closed", "the connection to %s has ended without a word%s%s: perfd or its relay there "
                           "was stopped, or their logs say why", t->to, t->error ? ": " : "", t->error ? strerror(t->error) : "");
}
