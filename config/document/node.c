/*
 * libyaml's events and not its document API, because that one loses anchors' places, accepts duplicate keys, and
 * builds whatever it is given: here depth, nodes and anchors are bounded while reading. An alias is a second pointer
 * to the same node, so it costs no memory; what it costs to walk is its weight, and weights are bounded too.
 */
#include "config/document/node.h"

#include <stdint.h>
#include <string.h>
#include <yaml.h>

#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/error.h"

typedef struct NodeReader {
        yaml_parser_t *parser;
        const char *path, *bytes;
        size_t length;
        unsigned file, depth;
        size_t weight; /* of all that was read so far */
        ConfigDiagnostics *diagnostics;
        Document document;
} NodeReader;

static int node_read(NodeReader *r, yaml_event_t *event, Node **ret);

static ConfigPlace mark_place(const NodeReader *r, yaml_mark_t mark) {
        return (ConfigPlace){ .path = r->path, .file = r->file, .line = (unsigned)mark.line + 1,
                              .column = (unsigned)mark.column + 1 };
}

/* The reader's errors have no mark, only a byte offset. */
static ConfigPlace place_at_offset(const NodeReader *r, size_t offset) {
        ConfigPlace at = { .path = r->path, .file = r->file, .line = 1, .column = 1 };

        for (size_t i = 0; i < offset && i < r->length; i++) {
                if (r->bytes[i] == '\n') {
                        at.line++;
                        at.column = 1;
                } else if ((r->bytes[i] & 0xc0) != 0x80) {
                        at.column++;
                }
        }
        return at;
}

/* What stands at a mark, whose column counts characters. */
static char byte_at(const NodeReader *r, yaml_mark_t mark) {
        size_t line = 0, column = 0, i = 0;

        for (; i < r->length && line < mark.line; i++)
                line += r->bytes[i] == '\n';
        for (; i < r->length && column < mark.column; i++)
                column += i + 1 == r->length || (r->bytes[i + 1] & 0xc0) != 0x80;
        return i < r->length ? (char)r->bytes[i] : '\0';
}

/* The library says of a tab "found character that cannot start any token", and of one in a text that it is no space. */
static bool is_misplaced_tab(const NodeReader *r) {
        return r->parser->error == YAML_SCANNER_ERROR && byte_at(r, r->parser->problem_mark) == '\t';
}

static int refuse_syntax(NodeReader *r) {
        const yaml_parser_t *p = r->parser;

        if (p->error == YAML_MEMORY_ERROR)
                return error_origin(-ENOMEM);
        if (p->error == YAML_READER_ERROR)
                config_diagnostics_add(r->diagnostics, place_at_offset(r, p->problem_offset), "not YAML: %s", p->problem);
        else if (is_misplaced_tab(r))
                config_diagnostics_add(r->diagnostics, mark_place(r, p->problem_mark),
                                       "not YAML: a tab, and YAML is indented by spaces alone");
        else if (p->context)
                config_diagnostics_add(r->diagnostics, mark_place(r, p->problem_mark), "not YAML: %s, %s (from line %zu)",
                                       p->problem, p->context, p->context_mark.line + 1);
        else
                config_diagnostics_add(r->diagnostics, mark_place(r, p->problem_mark), "not YAML: %s", p->problem);
        return REFUSED_INVALID;
}

static int reader_next(NodeReader *r, yaml_event_t *ret) {
        return yaml_parser_parse(r->parser, ret) ? 0 : refuse_syntax(r);
}

static int node_new(NodeReader *r, NodeKind kind, yaml_mark_t mark, Node **ret) {
        Document *d = &r->document;
        Node *n;

        if (!ARRAY_ROOM(d->nodes, d->n_nodes))
                return error_origin(-ENOMEM);
        n = calloc(1, sizeof(*n));
        if (!n)
                return error_origin(-ENOMEM);
        *n = (Node){ .kind = kind, .at = mark_place(r, mark), .shift = -1, .weight = 1 };
        d->nodes[d->n_nodes++] = n;
        *ret = n;
        return 0;
}

static int reader_charge(NodeReader *r, ConfigPlace at, size_t weight) {
        r->weight += weight; /* neither is much above CONFIG_WEIGHT_MAX */
        if (r->weight <= CONFIG_WEIGHT_MAX)
                return 0;
        config_diagnostics_add(r->diagnostics, at, "the file is too large: more than %d values, where aliases count as often as "
                "they repeat values, and long texts count several times", CONFIG_WEIGHT_MAX);
        return REFUSED_INVALID;
}

/* Known from its end on: an alias inside of what it names finds nothing, so the tree has no cycles. */
static int anchor_add(NodeReader *r, const yaml_char_t *name, Node *node) {
        Document *d = &r->document;
        char *copy;

        if (!name)
                return 0;
        if (d->n_anchors >= CONFIG_ANCHORS_MAX) {
                config_diagnostics_add(r->diagnostics, node->at, "too many anchors: at most %d in one file",
                                       CONFIG_ANCHORS_MAX);
                return REFUSED_INVALID;
        }
        if (!ARRAY_ROOM(d->anchors, d->n_anchors))
                return error_origin(-ENOMEM);
        copy = strdup((const char *)name);
        if (!copy)
                return error_origin(-ENOMEM);
        d->anchors[d->n_anchors++] = (NodeAnchor){ .name = copy, .node = node };
        return 0;
}

static int alias_read(NodeReader *r, const yaml_event_t *event, Node **ret) {
        const char *name = (const char *)event->data.alias.anchor;
        Document *d = &r->document;
        int error;

        for (size_t i = d->n_anchors; i > 0; i--) { /* the last of a name counts */
                if (strcmp(d->anchors[i - 1].name, name) != 0)
                        continue;
                error = reader_charge(r, mark_place(r, event->start_mark), d->anchors[i - 1].node->weight);
                if (error == 0)
                        *ret = d->anchors[i - 1].node;
                return error;
        }
        config_diagnostics_add(r->diagnostics, mark_place(r, event->start_mark),
                               "alias '*%s': no anchor '&%s' is before it in this file", name, name);
        error = reader_charge(r, mark_place(r, event->start_mark), 1);
        return error != 0 ? error : node_new(r, NODE_BROKEN, event->start_mark, ret);
}

/* Where text[0] stands, if the text stands there letter by letter, so that a place in it is a place in the file. */
static int text_shift(const yaml_event_t *event) {
        size_t n_columns = event->end_mark.column - event->start_mark.column;
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

        if (event->end_mark.line != event->start_mark.line)
                return -1;
        return n_columns == event->data.scalar.length + (plain ? 0 : 2) ? !plain : -1;
}

static int text_read(NodeReader *r, const yaml_event_t *event, Node **ret) {
        const char *value = (const char *)event->data.scalar.value;
        Node *n;
        int error;

        error = node_new(r, NODE_TEXT, event->start_mark, &n);
        if (error != 0)
                return error;
        n->weight += event->data.scalar.length / CONFIG_WEIGHT_TEXT;
        n->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        n->shift = text_shift(event);
        n->text = strndup(value, event->data.scalar.length);
        if (!n->text)
                return error_origin(-ENOMEM);
        if (strlen(value) < event->data.scalar.length) {
                config_diagnostics_add(r->diagnostics, n->at, "this text contains a zero byte");
                n->kind = NODE_BROKEN;
        }
        error = anchor_add(r, event->data.scalar.anchor, n);
        if (error == 0)
                *ret = n;
        return error;
}

static int node_add_child(NodeReader *r, Node *n, Node *child) {
        if (n->kind == NODE_MAP && n->n_children >= 2 * CONFIG_KEYS_MAX) {
                config_diagnostics_add(r->diagnostics, child->at, "too many keys: at most %d in one mapping", CONFIG_KEYS_MAX);
                return REFUSED_INVALID;
        }
        if (!ARRAY_ROOM(n->children, n->n_children))
                return error_origin(-ENOMEM);
        n->children[n->n_children++] = child;
        n->weight += child->weight;
        return 0;
}

static int children_read(NodeReader *r, Node *n, yaml_event_type_t end) {
        for (;;) {
                yaml_event_t event;
                Node *child = NULL;
                int error;

                error = checkpoint(NULL);
                if (error == 0)
                        error = reader_next(r, &event);
                if (error != 0)
                        return error;
                if (event.type == end) {
                        yaml_event_delete(&event);
                        return 0;
                }
                error = node_read(r, &event, &child);
                yaml_event_delete(&event);
                if (error == 0)
                        error = node_add_child(r, n, child);
                if (error != 0)
                        return error;
        }
}

static int pair_order(const void *left, const void *right) {
        const Node *a = **(Node *const *const *)left, *b = **(Node *const *const *)right;
        int order = strcmp(a->text, b->text);

        if (order != 0)
                return order;
        if (a->at.line != b->at.line)
                return a->at.line < b->at.line ? -1 : 1;
        return a->at.column < b->at.column ? -1 : a->at.column > b->at.column;
}

/* Drops the pairs whose key is no text or stands before with the same name; says so. */
static int map_check_keys(NodeReader *r, Node *map) {
        _cleanup_free_ Node ***sorted = calloc(map->n_children / 2 + 1, sizeof(*sorted));
        size_t n = 0, to = 0;

        if (!sorted)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i + 1 < map->n_children; i += 2) {
                if (map->children[i]->kind == NODE_TEXT)
                        sorted[n++] = &map->children[i];
                else if (map->children[i]->kind != NODE_BROKEN)
                        config_diagnostics_add(r->diagnostics, map->children[i]->at, "a key must be text, not a list or a "
                                                                               "mapping");
        }
        qsort(sorted, n, sizeof(*sorted), pair_order);
        for (size_t i = 0, first = 0; i < n; i++) {
                const Node *key = *sorted[i], *before = *sorted[first];

                if (i == 0 || strcmp(key->text, before->text) != 0) {
                        first = i;
                        continue;
                }
                config_diagnostics_add(r->diagnostics, key->at, "key %s occurs twice, first in line %u",
                                       QUOTE(key->text), before->at.line);
                *sorted[i] = NULL;
        }
        for (size_t i = 0; i + 1 < map->n_children; i += 2) {
                if (!map->children[i] || map->children[i]->kind != NODE_TEXT)
                        continue;
                map->children[to] = map->children[i];
                map->children[to + 1] = map->children[i + 1];
                to += 2;
        }
        map->n_children = to;
        return 0;
}

static int collection_read(NodeReader *r, yaml_event_t *event, Node **ret) {
        bool is_map = event->type == YAML_MAPPING_START_EVENT;
        const yaml_char_t *anchor = is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
        Node *n;
        int error;

        error = node_new(r, is_map ? NODE_MAP : NODE_LIST, event->start_mark, &n);
        if (error != 0)
                return error;
        if (r->depth >= CONFIG_DEPTH_MAX) {
                config_diagnostics_add(r->diagnostics, n->at, "too deep: at most %d nested lists and mappings",
                                       CONFIG_DEPTH_MAX);
                return REFUSED_INVALID;
        }
        r->depth++;
        error = children_read(r, n, is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT);
        r->depth--;
        if (error == 0 && is_map)
                error = map_check_keys(r, n);
        if (error == 0)
                error = anchor_add(r, anchor, n);
        if (error == 0)
                *ret = n;
        return error;
}

static const yaml_char_t *event_tag(const yaml_event_t *event) {
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                return event->data.scalar.tag;
        case YAML_SEQUENCE_START_EVENT:
                return event->data.sequence_start.tag;
        case YAML_MAPPING_START_EVENT:
                return event->data.mapping_start.tag;
        default:
                return NULL;
        }
}

/* The event stays the caller's. */
static int node_read(NodeReader *r, yaml_event_t *event, Node **ret) {
        const yaml_char_t *tag = event_tag(event);
        size_t weight = 1;
        int error;

        if (event->type == YAML_ALIAS_EVENT)
                return alias_read(r, event, ret);
        if (event->type == YAML_SCALAR_EVENT)
                weight += event->data.scalar.length / CONFIG_WEIGHT_TEXT;
        error = reader_charge(r, mark_place(r, event->start_mark), weight);
        if (error != 0)
                return error;
        if (tag)
                config_diagnostics_add(r->diagnostics, mark_place(r, event->start_mark), "tag %s: tags are not supported; remove "
                        "it", QUOTE((const char *)tag));
        return event->type == YAML_SCALAR_EVENT ? text_read(r, event, ret) : collection_read(r, event, ret);
}

static int stream_read(NodeReader *r) {
        bool ended = false;
        int error = 0;

        while (error == 0 && !ended) {
                yaml_event_t event;

                error = reader_next(r, &event);
                if (error != 0)
                        return error;
                switch (event.type) {
                case YAML_STREAM_END_EVENT:
                        ended = true;
                        break;
                case YAML_STREAM_START_EVENT:
                case YAML_DOCUMENT_END_EVENT:
                        break;
                case YAML_DOCUMENT_START_EVENT:
                        if (r->document.root) {
                                config_diagnostics_add(r->diagnostics, mark_place(r, event.start_mark),
                                                       "a second document begins here: a file can contain only one");
                                error = REFUSED_INVALID;
                        }
                        break;
                default:
                        error = node_read(r, &event, &r->document.root);
                }
                yaml_event_delete(&event);
        }
        return error;
}

/* As libyaml sees it: a carriage return, NEL and the separators of lines and paragraphs break lines as well. */
static bool begins_line(const char *bytes, size_t i) {
        return i == 0 || bytes[i - 1] == '\n' || bytes[i - 1] == '\r' || (i >= 2 && memcmp(&bytes[i - 2], "\xc2\x85", 2) == 0) ||
               (i >= 3 && (memcmp(&bytes[i - 3], "\xe2\x80\xa8", 3) == 0 || memcmp(&bytes[i - 3], "\xe2\x80\xa9", 3) == 0));
}

/*
 * Before libyaml sees them: it compares each with all before it, and reads them all in one call, so that a file of them keeps
 * everybody waiting for seconds.
 */
static int refuse_tag_directives(const NodeReader *r) {
        static const char directive[] = "%TAG";
        const char *end = r->bytes + r->length;

        for (const char *p = r->bytes; (p = memmem(p, (size_t)(end - p), directive, strlen(directive))); p++) {
                size_t offset = (size_t)(p - r->bytes);

                if (!begins_line(r->bytes, offset))
                        continue;
                config_diagnostics_add(r->diagnostics, place_at_offset(r, offset), "%s at the beginning of a line: tags are not "
                        "supported; remove it", directive);
                return REFUSED_INVALID;
        }
        return 0;
}

int document_decode(const char *path, unsigned file, const char *bytes, size_t length, ConfigDiagnostics *m,
                       Document *ret) {
        yaml_parser_t parser;
        NodeReader r = { .parser = &parser, .path = path, .bytes = bytes, .length = length, .file = file,
                         .diagnostics = m, .document = DOCUMENT_NULL };
        int error;

        if (length > CONFIG_FILE_MAX) {
                config_diagnostics_add(m, (ConfigPlace){ .path = path, .file = file },
                                       "too long: %zu bytes, expected at most %d", length, CONFIG_FILE_MAX);
                return REFUSED_INVALID;
        }
        if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) { /* told the encoding, libyaml expects no mark of it */
                r.bytes += 3;
                r.length -= 3;
        }
        error = refuse_tag_directives(&r);
        if (error != 0)
                return error;
        if (!yaml_parser_initialize(&parser))
                return error_origin(-ENOMEM);
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, (const unsigned char *)r.bytes, r.length);
        error = stream_read(&r);
        yaml_parser_delete(&parser);
        if (error != 0) {
                document_deinit(&r.document);
                return error;
        }
        *ret = r.document;
        return 0;
}

void document_deinit(Document *d) {
        for (size_t i = 0; i < d->n_nodes; i++) {
                free(d->nodes[i]->text);
                free(d->nodes[i]->children);
                free(d->nodes[i]);
        }
        free(d->nodes);
        for (size_t i = 0; i < d->n_anchors; i++)
                free(d->anchors[i].name);
        free(d->anchors);
        *d = DOCUMENT_NULL;
}

const Node *node_find(const Node *map, const char *key) {
        for (size_t i = 0; map->kind == NODE_MAP && i + 1 < map->n_children; i += 2)
                if (strcmp(map->children[i]->text, key) == 0)
                        return map->children[i + 1];
        return NULL;
}

bool node_is_empty(const Node *n) {
        return n->kind == NODE_TEXT && !n->quoted &&
               (strcmp(n->text, "") == 0 || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}
