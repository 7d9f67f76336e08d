/* For whom a socket may not be used. */
#pragma once

/* What is to be done, for a message; malloc'ed. */
char *socket_advice(const char *path);
