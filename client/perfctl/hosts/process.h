/* For hosts.c: a process that does what perfctl does with one host, and prints it into pipes. */
#pragma once

#include "client/perfctl/hosts/output.h"

/* 0, or an exit status after a message. */
int host_start(Hosts *s, Host *h);
/* False: there is nothing more now. */
bool host_read(Hosts *s, Host *h, int which);
void host_close(Hosts *s, Host *h, int which);
