/* For lines of `watch`: columns of the process that did it, which are there if they are asked for. */
#pragma once

#include "client/perfctl/base/output.h"
#include "client/perfd.h"

#define CONTAINER_ID_SHOWN ((size_t)12) /* letters of it, as docker ps(1) and podman-ps(1) show it; --container takes it */

typedef enum ItemColumn {
        COLUMN_UID,
        COLUMN_EXE,
        COLUMN_CGROUP,
        COLUMN_CONTAINER,
        COLUMN_UNIT,
        _ITEM_COLUMN_MAX,
} ItemColumn;

/* In the order of their place on the line. */
typedef struct ItemColumns {
        ItemColumn list[_ITEM_COLUMN_MAX];
        size_t widths[_ITEM_COLUMN_MAX]; /* of the longest text so far, by place */
        size_t n;
} ItemColumns;

/* Adds one; false: it is there already. */
bool item_columns_add(ItemColumns *c, ItemColumn column);
/* "UID" of the i-th. */
const char *item_column_heading(const ItemColumns *c, size_t i);
/* The text of the i-th, "-" if it is not known. process: NULL if nothing is known. Gives its characters. */
size_t item_column_put(ItemColumns *c, size_t i, Output *o, const perfd_process *process);
