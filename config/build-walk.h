/* For build*.c alone: the walk over a document, and the parts of it that know what their keys mean together. */
#pragma once

#include "config/build.h"
#include "config/node.h"

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

/* One value of targets or groups, which become the last ones of the configuration. -ENOMEM. */
int target_build(Build *b, const Node *key, const Node *section);
int group_build(Build *b, const Node *key, const Node *section);
/* The list of events of the group that is the last one. -ENOMEM. */
int events_build(Build *b, const Key *k, const Node *list);

/* access.rules, in the place of those that an earlier file has. -ENOMEM. */
int rules_build(Build *b, const Key *k, const Node *list);

/* Lists of an event whose items have names. -ENOMEM. */
int attr_build(Build *b, const Key *k, const Node *map, void *object);
int fields_build(Build *b, const Key *k, const Node *node, void *object);

/* What the keys of an event mean for each other. `item` is the mapping, or the text that stands for it. -ENOMEM. */
int event_check(Build *b, const ConfigEvent *event, const Node *item);
