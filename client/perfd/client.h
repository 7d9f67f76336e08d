/*
 * A client: one connection to the daemon, and the last error on it. Requests are in events.h, status.h, ledger.h,
 * configuration.h and emit.h; stream.h makes a stream of it. It belongs to one thread at a time.
 */
#pragma once

#include "declarations.h"
#include "error.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_client perfd_client;

/* program: names the client in the daemon's log, e.g. "mytool 1.2"; copied. NULL: no memory. */
perfd_client *perfd_client_new(const char *program);
/* Takes NULL. Closes the connection; results stay valid, items, events and errors do not. */
void perfd_client_free(perfd_client *client);

/* The longest time in milliseconds that a call waits for its answer, connecting too; -1, the default: without a limit. */
void perfd_client_set_timeout(perfd_client *client, int milliseconds);
/*
 * Connects to the socket at `path`, and waits for the daemon's greeting. 0; PERFD_E_UNREACHABLE, _REFUSED, _CLOSED, _PROTOCOL,
 * _TIMEOUT, PERFD_E_STATE: it is connected already, PERFD_E_INVALID: no path, or one that is too long for a socket; -errno.
 */
int perfd_client_connect(perfd_client *client, const char *path);
/*
 * The same on a stream socket that is connected already, e.g. through a tunnel. The client owns the fd from now on. Streams share
 * memory with the daemon only if perfd_subscription.ring_bytes requests it.
 */
int perfd_client_connect_fd(perfd_client *client, int fd);
/*
 * The same at "unix:PATH", or on another host at "ssh://[USER@]HOST[:PORT][/PATH]" or "tls://HOST:PORT". With ssh, PATH is the socket
 * there if it is not the usual one. That runs ssh(1), or the program that $PERFD_SSH names instead, as a child of the caller, with the caller's configuration,
 * agent and terminal, and `perfctl stdio` on that host; it ends with the client. Then SIGCHLD is delivered to the caller, whose own
 * handler must not wait for children that it does not know. The stream uses the socket. Errors as above; PERFD_E_INVALID: no such URI;
 * PERFD_E_UNREACHABLE has the reason "ssh": no connection to the host, "no-perfctl": the host has no perfctl, "unreachable": it has no
 * perfd.
 *
 * tls:// is TLS 1.3 to perfd-relay on that host, with the files of perfd_client_set_tls(). An address of IPv6 stands in brackets. The
 * certificate there has to be of that CA and to have HOST in its subjectAltName. The stream uses the socket. Looking up the name takes as
 * long as resolv.conf(5) says, whatever perfd_client_set_timeout() does. PERFD_E_INVALID: no such URI, or the files are not as they have
 * to be (reasons "no-certificate", "bad-ca", "bad-certificate", "bad-key", "wrong-key", "readable-key"). PERFD_E_UNREACHABLE has one of
 * these reasons: "unknown-host", "refused", "no-route", "timeout", "closed": no connection; "not-tls", "tls-version", "no-protocol":
 * another server; "unknown-ca", "expired", "not-yet-valid", "wrong-name", "bad-certificate": of its certificate; "certificate-refused": it
 * does not accept this client's.
 */
int perfd_client_connect_uri(perfd_client *client, const char *uri);
/*
 * For tls://, before connecting: files in PEM, which are read at each connecting; ca.crt, client.crt and client.key in a directory, or one
 * by one. The certificate may be followed by those between it and its CA. The key has no passphrase, and nobody but its owner may read it,
 * if it is root's also a group. 0; PERFD_E_INVALID: a path is missing; -ENOMEM.
 */
int perfd_client_set_tls(perfd_client *client, const char *directory);
int perfd_client_set_tls_files(perfd_client *client, const char *ca, const char *certificate, const char *key);
/*
 * Before connecting to ssh:// or tls://: asks for what comes to be compressed with zstd, which takes CPU time on both hosts. Where the
 * other side does not, because it is older or relay.yaml(5) says so, the connection is one without it. Other URIs and
 * perfd_client_connect() are then refused with PERFD_E_INVALID, reason "no-compression"; perfd_client_connect_fd() takes what comes,
 * compressed or not. 0; PERFD_E_STATE: it is connected already.
 */
int perfd_client_set_compression(perfd_client *client, bool is_wanted);
/* Whether it is, once it is connected. */
bool perfd_client_is_compressed(const perfd_client *client);

/* The error of the last function that failed; never NULL; valid until the next call on this client. */
const perfd_error *perfd_client_error(const perfd_client *client);
/* The daemon's version, "" before it is known. Valid until the client is freed. */
const char *perfd_client_version(const perfd_client *client);
/* True if the socket of this connection permits changes; false also before it is known. */
bool perfd_client_may_change(const perfd_client *client);

/* For __attribute__((cleanup)). */
static inline void perfd_client_freep(perfd_client **client) {
        perfd_client_free(*client);
}

PERFD_END_DECLARATIONS
