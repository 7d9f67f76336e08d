/*
 * For build.c: one YAML document as a tree in memory, each node with its place. Errors of YAML itself (syntax,
 * duplicate keys, unknown aliases) are found here, so that what comes out has none.
 */
#pragma once

#include "config/document/diagnostic.h"
#include "daemon/base/cleanup.h"

enum {
        CONFIG_FILE_MAX = 1 << 20,     /* bytes */
        CONFIG_DEPTH_MAX = 16,         /* nested lists and mappings */
        CONFIG_WEIGHT_MAX = 200 * 1000, /* of the root, every alias replaced by what it names */
        CONFIG_WEIGHT_TEXT = 32,       /* bytes of text that weigh as much as one more value */
        CONFIG_ANCHORS_MAX = 256,
        CONFIG_KEYS_MAX = 1 << 14,     /* of one mapping: more than targets, groups or settings there can be */
};

typedef enum NodeKind {
        NODE_TEXT,
        NODE_LIST,
        NODE_MAP,
        NODE_BROKEN, /* an error has been added for it already */
} NodeKind;

typedef struct Node {
        NodeKind kind;
        ConfigPlace at;
        char *text;             /* NODE_TEXT: no zero byte in it */
        bool quoted;            /* in '' or "" or a block */
        int shift;              /* column of text[0] minus at.column; -1 if the text is not as it stands in the file */
        struct Node **children; /* NODE_LIST: items; NODE_MAP: key, value, key, value */
        size_t n_children;
        size_t weight; /* what a walk over it costs: the nodes that it meets, and their texts */
} Node;

typedef struct NodeAnchor {
        char *name;
        Node *node;
} NodeAnchor;

/* Owns its nodes: with aliases, one node can be the child of several. */
typedef struct Document {
        Node **nodes;
        size_t n_nodes;
        NodeAnchor *anchors;
        size_t n_anchors;
        Node *root; /* NULL: there is nothing in the file */
} Document;

#define DOCUMENT_NULL ((Document){ .nodes = NULL })

/*
 * 0, also if errors were added that leave the rest readable; REFUSED_INVALID if the text is no YAML or too much of
 * it (the error is added); REFUSED_CANCELLED from a checkpoint; negative: -ENOMEM. `path` must live as long as the document.
 */
int document_decode(const char *path, unsigned file, const char *bytes, size_t length, ConfigDiagnostics *m,
                       Document *ret);
void document_deinit(Document *d);

/* The value of a key of a NODE_MAP, or NULL. */
const Node *node_find(const Node *map, const char *key);

/* Nothing was written where a value could stand: "", "~" or "null", not quoted. */
bool node_is_empty(const Node *n);
