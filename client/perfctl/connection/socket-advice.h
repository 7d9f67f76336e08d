/* For whom a socket may not be used. */
#pragma once

#include <stdbool.h>

/* Somebody listens on it, though no file of that name is there any more: it was removed. False: also if that is not known. */
bool socket_is_removed(const char *path);
/* What is to be done, for a message; malloc'ed. */
char *socket_advice(const char *path);
