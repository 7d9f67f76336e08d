/*
 * For this folder, and for who reads another file along a table of its own: the walk over a document along a table of keys. It knows no
 * key by its name: what keys mean together is known to the parts of Build, which walk on below them.
 */
#pragma once

#include "config/config.h"
#include "config/document/node.h"
#include "config/keys.h"

typedef struct Build Build;

/* Builds the value of `k` into `object`, or into the configuration. 0, REFUSED_CANCELLED, -ENOMEM; errors are added. */
typedef int (*BuildPart)(Build *b, const Key *k, const Node *value, void *object);

/* A configuration under construction. */
struct Build {
        Config *config; /* NULL: of another file */
        ConfigDiagnostics *diagnostics;
        const Key *keys; /* the table */
        size_t n_keys;   /* at most KEYS_MAX */
        ConfigPlace *set_at; /* by row: where the values of the file as a whole stand; OWNER_CONFIG */
        const BuildPart *parts; /* by KeyType; NULL: the walk itself knows how */
        bool is_partial;        /* a file could not be read whole, so what is missing may stand there */
};

#define BUILD_NULL ((Build){ .config = NULL })

/* The node cannot be what it should be: says so, unless something was said already. */
void node_refuse(Build *b, const Node *n, const char *label, const char *expected);
/* The place of a byte (from 1; 0: none) of a text, or of the text if it does not stand in the file as it is. */
ConfigPlace node_place(const Node *n, unsigned position);
/* Where the value of a key of a mapping stands; path NULL if it has none, or if it is no mapping. */
ConfigPlace map_place(const Node *map, const char *key);

/* A text that is the value of `k`, or one item of it. Gives whether it is set. -ENOMEM. */
int text_build(Build *b, const Key *k, const Node *n, void *object, bool *ret_set);
/* A mapping whose keys are the rows directly below `pattern`. -ENOMEM. */
int section_build(Build *b, const char *pattern, const Node *map, void *object);
