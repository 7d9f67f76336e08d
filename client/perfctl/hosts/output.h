/* For hosts.c: what the process of a host prints, line by line, and how it is shown. */
#pragma once

#include <sys/types.h>

#include "client/perfctl/hosts/ledger.h"
#include "client/perfctl/hosts/merge.h"
#include "client/perfctl/hosts/retry.h"
#include "client/perfctl/base/perfctl.h"

enum {
        PIPE_OUT,
        PIPE_ERR,
        PIPES,
};

typedef struct Lines {
        char *bytes; /* malloc */
        size_t n, room;
} Lines;

/*
 * A host whose stream was lost is away until another process of it has a stream: `gap` says since when and why. What the attempts
 * until then say is held, and shown where it is something else than before.
 */
typedef struct Host {
        const char *name;
        pid_t pid;       /* 0: none runs */
        int fds[PIPES];  /* -1: closed */
        Lines lines[PIPES]; /* what has come of the last line */
        Lines item;      /* what has come of an item */
        bool is_in_item;
        uint64_t wall, error; /* of it */
        uint64_t wall_last;   /* of the last thing that came */
        int status;
        HostSum sum;

        bool has_streamed; /* once */
        bool is_streaming; /* this process has a stream */
        bool is_away;
        bool is_closing;   /* this process only prints the last gap */
        char *passing;     /* why this process has failed, if it may pass; malloc, or NULL */
        HostGap gap;       /* its `why` is malloc, or NULL */
        Lines held, told;
        HostRetry retry;
        uint64_t first_began, began, lost, again; /* CLOCK_MONOTONIC: its streams, the gap, the next attempt or the end of this one; 0: none */
} Host;

typedef struct Hosts {
        Perfctl *p;
        Host *list;
        HostQueue *queues; /* of them */
        size_t n, width; /* of the longest name */
        size_t line;     /* columns of the terminal, 0: there is none */
        HostsForm form;
        uint64_t hold;   /* ns, of HOSTS_MERGED */
        int (*run)(Perfctl *p);           /* of the verb */
        int (*end)(Perfctl *p, int code); /* of a process: gives its status */
        bool is_hidden;  /* what they print on stdout is not shown */
        bool is_told;    /* to end */
        bool has_heading;
        bool may_lose;       /* what is missing is no failure */
        bool reconnects;
        uint64_t reconnect;  /* ns that it is tried for; UINT64_MAX: always */
        uint64_t duration, count; /* of --for and --count; 0: none */
} Hosts;

/* What a pipe of a host has brought: its whole lines are shown, if they are stderr's, or queued. */
void host_take_bytes(Hosts *s, Host *h, int which, const char *bytes, size_t n);
/* Of an attempt that has ended: what it said, if it is something else than the last one. */
void host_show_held(Hosts *s, Host *h);
/* A message of its own about a host, on stderr; gives `code` back. */
int host_tell(Hosts *s, const Host *h, int code, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Shows what is due. The ns until something is, UINT64_MAX: only after something has come. */
uint64_t hosts_give(Hosts *s);
/* Frees what it holds. */
void host_deinit(Host *h);
