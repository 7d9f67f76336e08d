/* For folded stacks and flame graphs: the stacks of a profile as a tree, whose first level is the comm. */
#pragma once

#include "client/profile/profile.h"

typedef struct StackNode {
        uint32_t parent;   /* index of a node before this one; of the root: 0 */
        uint32_t function; /* ID_NONE: a comm, or the root */
        uint32_t comm;     /* id of a string; ID_NONE: a function, or the root */
} StackNode;

typedef struct StackTree {
        StackNode *nodes; /* the first is the root */
        uint32_t n_nodes;
        uint32_t *ends; /* for each stack of the profile, the node of its innermost frame */
        IdTable ids;
} StackTree;

#define STACK_TREE_NULL ((StackTree){ .nodes = NULL })

/* 0, -ENOMEM or PROFILE_E_TOO_MANY; to be deinitialized then, too. */
int stack_tree_init(StackTree *t, const Profile *p);
void stack_tree_deinit(StackTree *t);
