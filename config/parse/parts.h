/* For this folder alone: what knows what its keys mean together. */
#pragma once

#include "config/parse/walk.h"

/* One value of targets or groups, which become the last ones of the configuration. -ENOMEM. */
int target_build(Build *b, const Node *key, const Node *section);
int group_build(Build *b, const Node *key, const Node *section);
/* The list of events of the group that is the last one. -ENOMEM. */
int events_build(Build *b, const Key *k, const Node *list, void *object);

/* access.rules, in the place of those that an earlier file has. -ENOMEM. */
int rules_build(Build *b, const Key *k, const Node *list, void *object);

/* Lists of an event whose items have names. -ENOMEM. */
int attr_build(Build *b, const Key *k, const Node *map, void *object);
int fields_build(Build *b, const Key *k, const Node *node, void *object);

/* What the keys of an event mean for each other. `item` is the mapping, or the text that stands for it. -ENOMEM. */
int event_check(Build *b, const ConfigEvent *event, const Node *item);

/* What can only be seen when all files are there. -ENOMEM. */
int build_check_references(Build *b);
/*
 * What users and groups are on this host, by /etc/passwd and /etc/group, if a host is known (host.h). A name that is in neither
 * is a warning, and means nobody. 0, REFUSED_CANCELLED, -ENOMEM.
 */
int rules_resolve(Build *b);
