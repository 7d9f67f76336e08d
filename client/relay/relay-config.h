/*
 * relay.yaml(5) as a value: who may do what, where the relay listens, and which files say who it is. Read along a table of keys by
 * the walk of config/, so that an error is said as one of perfd.yaml is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/relay/publish/publish-config.h"
#include "config/document/diagnostic.h"
#include "config/keys.h"
#include "daemon/base/pattern.h"
#include "daemon/base/strings.h"

#define RELAY_RULES_MAX 1000

/* One item of `clients`. */
typedef struct RelayRule {
        char *name;    /* as it is written: a glob on names of certificates */
        Pattern *glob;
        Strings events;
        char *where; /* NULL: none */
        bool status, raw, metrics, control;
        uint64_t queue;            /* bytes; 0: what perfd gives */
        uint64_t connections;      /* of one name at a time */
        uint64_t bytes_per_second; /* 0: unlimited */
        uint64_t compress;         /* level of zstd; 0: never */
        ConfigPlace at;
} RelayRule;

typedef struct RelayConfig {
        char *path;
        uint64_t version;
        char *stream, *control; /* sockets of perfd */
        Strings listen;         /* ADDRESS:PORT */
        bool has_listen;        /* false: no clients come by TLS, and all of it but the defaults is empty */
        char *certificate, *key, *ca, *crl; /* complete paths; crl: NULL is none */
        uint64_t handshakes, handshakes_per_address, handshake_timeout; /* ns */
        Strings metrics_listen; /* ADDRESS:PORT, of loopback */
        uint64_t metrics_connections, metrics_request_timeout /* ns */, metrics_series;
        RelayRule *rules;
        size_t n_rules;
        PublishConfig publish;
        ConfigPlace set_at[KEYS_MAX]; /* by row of relay_keys[] */
        bool takes_expired; /* a start goes on, with a warning, where there is nothing better that a refusal would keep */
} RelayConfig;

/* Rows in the order of the man page. */
extern const Key relay_keys[];
extern const size_t n_relay_keys;

/*
 * `*ret` is NULL before. 0: *ret is the configuration, and `m` has warnings at most; REFUSED_INVALID: `m` has each error; negative: -ENOMEM. `m` is a null
 * image before, and the caller's to deinit; it is not finished (config_diagnostics_finish()) so that what follows can add to it.
 * With REFUSED_INVALID *ret may be set all the same: so much of it as is there, for what else can be said.
 */
int relay_config_load(const char *path, ConfigDiagnostics *m, RelayConfig **ret);
/* The same for bytes; `path` is for messages, and its directory is the one that paths are relative to. */
int relay_config_parse(const char *path, const char *bytes, size_t length, ConfigDiagnostics *m, RelayConfig **ret);
RelayConfig *relay_config_free(RelayConfig *c);
DEFINE_CLEANUP(RelayConfig *, relay_config_free)

/* Where the value of a key of the file as a whole stands, "listen.key"; else the file. */
ConfigPlace relay_config_place(const RelayConfig *c, const char *pattern);
/* Whether a client may read metrics by TLS. */
bool relay_config_has_metrics_clients(const RelayConfig *c);
/* Whether both let a client do the same, so that its stream can go on. */
bool relay_rule_grants_same(const RelayRule *a, const RelayRule *b);
