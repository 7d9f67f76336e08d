/* One row is one key of relay.yaml; tests/check/config-keys compares them with relay.yaml(5). */
#include <stddef.h>

#include "client/relay/relay-config.h"
#include "proto/compression.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define MSEC UINT64_C(1000000) /* ns */

#define IN_CONFIG(field) .offset = offsetof(RelayConfig, field)
#define IN_PUBLISH(field) .offset = offsetof(RelayConfig, publish) + offsetof(PublishConfig, field)
#define IN_ROUTE(field) .offset = offsetof(PublishRoute, field)
#define IN_RULE(field) .offset = offsetof(RelayRule, field)

const Key relay_keys[] = {
        { "version", KEY_COUNT, NULL, "1, the only version of this format", "version of the format", .required = true,
          IN_CONFIG(version), .min = 1, .max = 1 },

        { "perfd", KEY_SECTION, .help = "the sockets of perfd" },
        { "perfd.stream", KEY_PATH, "/run/perfd/stream.sock", "an absolute path of at most 107 bytes",
          "stream socket of perfd", IN_CONFIG(stream) },
        { "perfd.control", KEY_PATH, NULL, "an absolute path of at most 107 bytes",
          "control socket of perfd, for clients with 'control'", IN_CONFIG(control) },

        { "listen", KEY_SECTION, NULL, "a mapping with the keys certificate, key and ca", "where clients connect, and the certificates" },
        { "listen.tls", KEY_WORDS, NULL, "addresses with ports in a list, such as ['0.0.0.0:7443', '[::]:7443']",
          "where the relay listens", IN_CONFIG(listen) },
        { "listen.certificate", KEY_TEXT, NULL, "the path of a file in PEM format", "certificate of the relay, and those between it and its CA",
          .required = true, IN_CONFIG(certificate) },
        { "listen.key", KEY_TEXT, NULL, "the path of a file in PEM format", "private key of that certificate", .required = true,
          IN_CONFIG(key) },
        { "listen.ca", KEY_TEXT, NULL, "the path of a file in PEM format", "CAs whose certificates clients may have",
          .required = true, IN_CONFIG(ca) },
        { "listen.crl", KEY_TEXT, NULL, "the path of a file in PEM format", "certificates that these CAs have revoked", IN_CONFIG(crl) },
        { "listen.handshakes", KEY_COUNT, "256", "a whole number from 1 to 65536",
          "connections that are not authenticated yet, at a time", IN_CONFIG(handshakes), .min = 1, .max = 65536 },
        { "listen.handshakes-per-address", KEY_COUNT, "16", "a whole number from 1 to 65536", "the same from one address",
          IN_CONFIG(handshakes_per_address), .min = 1, .max = 65536 },
        { "listen.handshake-timeout", KEY_DURATION, "10s", "a duration from 100ms to 5m", "how long a client has to authenticate",
          IN_CONFIG(handshake_timeout), .min = 100 * MSEC, .max = 300000 * MSEC },

        { "clients", KEY_RULES, NULL, "a list of clients", "what clients may do; the first item that matches a client decides" },
        { "clients[].name", KEY_TEXT, NULL, "a name of certificates or a glob", "matches certificates with such a name",
          .required = true, IN_RULE(name) },
        { "clients[].events", KEY_WORDS, NULL, "names of events or globs in a list, such as [\"sched:*\"]", "samples of these events",
          IN_RULE(events) },
        { "clients[].where", KEY_FILTER, NULL, "a predicate of at most 4000 bytes, such as 'sample.pid == 17'",
          "predicate that restricts the samples of the client", IN_RULE(where) },
        { "clients[].status", KEY_BOOL, "true", "true or false", "query state, events and the ledger", IN_RULE(status) },
        { "clients[].raw", KEY_BOOL, "false", "true or false", "the raw bytes of samples", IN_RULE(raw) },
        { "clients[].metrics", KEY_BOOL, "false", "true or false", "metrics of perfd and of the relay, by HTTP in TLS", IN_RULE(metrics) },
        { "clients[].queue", KEY_SIZE, NULL, "a size from 64KiB to 1GiB", "the largest queue that a stream of the client may have",
          IN_RULE(queue), .min = 64 * KIB, .max = GIB },
        { "clients[].connections", KEY_COUNT, "16", "a whole number from 1 to 65536", "connections of one name at a time",
          IN_RULE(connections), .min = 1, .max = 65536 },
        { "clients[].bytes-per-second", KEY_SIZE, NULL, "a size from 4KiB to 1024GiB", "how fast each connection is given bytes",
          IN_RULE(bytes_per_second), .min = 4 * KIB, .max = 1024 * GIB },
        { "clients[].compress", KEY_COUNT, "1", "a whole number from 0 to 9", "level of compression, if the client asks for it; 0: none",
          IN_RULE(compress), .min = 0, .max = COMPRESSION_LEVEL_MAX },
        { "clients[].control", KEY_BOOL, "false", "true or false", "everything that the control socket allows", IN_RULE(control) },

        { "metrics", KEY_SECTION, NULL, "a mapping with the key listen", "metrics of perfd and the relay, by HTTP" },
        { "metrics.listen", KEY_WORDS, NULL, "loopback addresses with ports in a list, such as ['127.0.0.1:9464']",
          "where they are served", .required = true, IN_CONFIG(metrics_listen) },
        { "metrics.connections", KEY_COUNT, "32", "a whole number from 1 to 1024", "connections at a time",
          IN_CONFIG(metrics_connections), .min = 1, .max = 1024 },
        { "metrics.request-timeout", KEY_DURATION, "10s", "a duration from 100ms to 5m", "how long a connection may last",
          IN_CONFIG(metrics_request_timeout), .min = 100 * MSEC, .max = 300000 * MSEC },
        { "metrics.series", KEY_COUNT, "20000", "a whole number from 100 to 100000", "series at most", IN_CONFIG(metrics_series),
          .min = 100, .max = 100000 },
        { "publish", KEY_SECTION, .help = "what is published to NATS JetStream" },
        { "publish.servers", KEY_WORDS, NULL, "addresses in a list, such as ['tls://nats.example:4222']",
          "servers, of which the first one that answers is used", .required = true, IN_PUBLISH(access.servers) },
        { "publish.ca", KEY_TEXT, NULL, "the path of a file in PEM format", "CAs whose certificates servers may have", IN_PUBLISH(access.ca) },
        { "publish.certificate", KEY_TEXT, NULL, "the path of a file in PEM format",
          "certificate of the relay, for servers that ask for one, and those between it and its CA", IN_PUBLISH(access.certificate) },
        { "publish.key", KEY_TEXT, NULL, "the path of a file in PEM format", "private key of that certificate", IN_PUBLISH(access.key) },
        { "publish.credentials", KEY_TEXT, NULL, "the path of a .creds file of NATS", "JWT of the relay and the seed of its key",
          IN_PUBLISH(access.credentials) },
        { "publish.user", KEY_TEXT, NULL, "the name of a user of the server", "who the relay is to servers with users and passwords",
          IN_PUBLISH(access.user) },
        { "publish.password-file", KEY_TEXT, NULL, "the path of a file with one line", "password of that user",
          IN_PUBLISH(access.password_file) },
        { "publish.token-file", KEY_TEXT, NULL, "the path of a file with one line", "token, for servers with one",
          IN_PUBLISH(access.token_file) },
        { "publish.stream", KEY_TEXT, "perfd", "the name of a stream of JetStream", "where messages are stored", IN_PUBLISH(stream) },
        { "publish.host", KEY_TEXT, NULL, "the name of this host in subjects", "name of this host in subjects", IN_PUBLISH(host) },
        { "publish.max-bytes", KEY_SIZE, "1GiB", "a size from 1MiB to 1024GiB", "how much a stream that is made holds", IN_PUBLISH(max_bytes),
          .min = MIB, .max = 1024 * GIB },
        { "publish.max-age", KEY_DURATION, "24h", "a duration from 1m to 8760h", "how long a stream that is made holds a message",
          IN_PUBLISH(max_age), .min = 60000 * MSEC, .max = MSEC * 3600000 * 8760 },
        { "publish.spool", KEY_SECTION, .help = "what is kept while no server takes it" },
        { "publish.spool.memory", KEY_SIZE, "64MiB", "a size from 1MiB to 16GiB", "bytes of memory for that", IN_PUBLISH(spool),
          .min = MIB, .max = 16 * GIB },
        { "publish.spool.path", KEY_TEXT, NULL, "the path of a directory", "directory of files for what memory does not hold, and for a "
          "restart", IN_PUBLISH(spool_path) },
        { "publish.spool.disk", KEY_SIZE, "1GiB", "a size from 4MiB to 1024GiB", "bytes of these files", IN_PUBLISH(spool_disk),
          .min = 4 * MIB, .max = 1024 * GIB },
        { "publish.routes", KEY_NAMED, NULL, "a mapping of names to what is published under them", "what is published, under which name",
          .required = true, .offset = offsetof(RelayConfig, publish) },
        { "publish.routes.NAME.events", KEY_WORDS, NULL, "names of events or globs in a list, such as [\"sched:*\"]", "samples of these events",
          .required = true, IN_ROUTE(events) },
        { "publish.routes.NAME.where", KEY_FILTER, NULL, "a predicate of at most 4000 bytes, such as 'sample.pid == 17'",
          "predicate that restricts the samples", IN_ROUTE(where) },
        { "publish.routes.NAME.fields", KEY_WORDS, NULL, "names of fields in a list", "only these fields of each event", IN_ROUTE(fields) },
        { "publish.routes.NAME.records", KEY_WORDS, NULL, "kinds of side records in a list, such as [comm, exit]", "side records",
          IN_ROUTE(records) },
        { "publish.routes.NAME.queue", KEY_SIZE, "8MiB", "a size from 64KiB to 1GiB", "the queue of the route in perfd", IN_ROUTE(queue),
          .min = 64 * KIB, .max = GIB },
};

const size_t n_relay_keys = sizeof(relay_keys) / sizeof(relay_keys[0]);
_Static_assert(sizeof(relay_keys) / sizeof(relay_keys[0]) <= KEYS_MAX, "more keys than a set of them has room for: raise KEYS_MAX");
