/* What a process of several hosts (hosts.h) puts around each item that it prints, so that it can be merged with the others'. */
#pragma once

#include "client/perfctl/perfctl.h"

#define ITEM_BEGIN '\x1e' /* no line of an item begins with these: text and JSON escape them */
#define ITEM_END '\x1f'

/* What is put between both has this wall time, ns since 1970, which is wrong by `error` at most; UINT64_MAX: nobody knows. */
void host_item_begin(Perfctl *p, uint64_t wall, uint64_t error);
void host_item_end(Perfctl *p);
