/* For hosts.c: hosts that go away, and come again. */
#pragma once

#include "client/perfctl/hosts/output.h"

/* Its process has ended, with this status of wait(2). */
void host_end(Hosts *s, Host *h, int status);
/* Of one that waits for its next attempt: there is none. */
void host_give_up(Hosts *s, Host *h);
/* Starts those whose time has come. 0, or an exit status after a message. */
int hosts_retry(Hosts *s);
/* ns until then, and `wait` at most. */
uint64_t hosts_until_retry(const Hosts *s, uint64_t wait);
