/* For config.c, build.c and check.c alone: the rules of access. */
#pragma once

#include "config/build.h"

/* Accepts none. */
void rules_free(Config *c);
/*
 * What users and groups are on this host, by /etc/passwd and /etc/group, if a host is known (host.h). A name that is in
 * neither is
 * a warning, and means nobody. 0, REFUSED_CANCELLED, -ENOMEM.
 */
int rules_resolve(Build *b);
