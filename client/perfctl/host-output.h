/* For hosts.c: what the process of a host prints, line by line, and how it is shown. */
#pragma once

#include <sys/types.h>

#include "client/perfctl/host-merge.h"
#include "client/perfctl/perfctl.h"

enum {
        PIPE_OUT,
        PIPE_ERR,
        PIPES,
};

typedef struct Lines {
        char *bytes; /* malloc: what has come of the last line */
        size_t n, room;
} Lines;

typedef struct Host {
        const char *name;
        pid_t pid;       /* 0: it has ended */
        int fds[PIPES];  /* -1: closed */
        Lines lines[PIPES];
        Lines item;      /* what has come of an item */
        bool is_in_item;
        uint64_t wall, error; /* of it */
        HostQueue queue; /* first in Hosts.queues */
        uint64_t n_items;
        int status;
} Host;

typedef struct Hosts {
        Perfctl *p;
        Host *list;
        HostQueue *queues; /* of them */
        size_t n, width; /* of the longest name */
        size_t line;     /* columns of the terminal, 0: there is none */
        HostsForm form;
        uint64_t hold;   /* ns, of HOSTS_MERGED */
        int (*end)(Perfctl *p, int code); /* of a process: gives its status */
        bool is_hidden;  /* what they print on stdout is not shown */
        bool is_told;    /* to end */
        bool has_heading;
} Hosts;

/* What a pipe of a host has brought: its whole lines are shown, if they are stderr's, or queued. */
void host_take_bytes(Hosts *s, Host *h, int which, const char *bytes, size_t n);
/* Shows what is due. The ns until something is, UINT64_MAX: only after something has come. */
uint64_t hosts_give(Hosts *s);
