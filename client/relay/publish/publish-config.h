/* The part `publish` of relay.yaml(5): what goes to NATS, and where that is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/relay/publish/publish-access.h"
#include "config/document/diagnostic.h"
#include "config/keys.h"
#include "daemon/base/strings.h"

typedef struct Build Build;
typedef struct Node Node;

#define PUBLISH_ROUTES_MAX 100

/* A name under `publish.routes`: one subscription. */
typedef struct PublishRoute {
        char *name;
        Strings events;
        char *where; /* NULL: none */
        Strings fields, records;
        uint64_t queue;  /* bytes of it in perfd */
        unsigned kinds;  /* SubscribeRequest.records */
        ConfigPlace at;
} PublishRoute;

typedef struct PublishConfig {
        PublishAccess access;
        char *stream, *host;
        uint64_t max_bytes, max_age; /* bytes, ns */
        uint64_t spool, spool_disk;  /* bytes in memory, and in files */
        char *spool_path;            /* complete; NULL: there are no files */
        PublishRoute *routes;
        size_t n_routes; /* 0: nothing is published */
} PublishConfig;

/* A BuildPart: the mapping of names to routes. The offset of the key is that of the PublishConfig in the object. */
int publish_routes_build(Build *b, const Key *k, const Node *map, void *object);
/* Adds an error for each text of a list that is a broken glob, where it stands. `list` may be NULL. */
void globs_check(Build *b, const Node *list, const char *key);
/* What the keys mean together; and the name of this host, where none is written. -ENOMEM. */
int publish_check(Build *b, const Node *root, PublishConfig *p);
/* Whether both publish the same, in the same way, wherever that is (publish_access_equal()). */
bool publish_config_equal(const PublishConfig *a, const PublishConfig *b);
/* Whether relay.yaml itself has a password or a token. */
bool publish_has_secret(const PublishConfig *p);
