/*
 * A program that carries a connection to another machine, such as ssh(1): a child of the caller's, whose stdin and stdout are our
 * socket. It ends with the client.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define SSH_FAILED 255 /* status of ssh(1): an error of its own, and not of the command there */

typedef struct Tunnel {
        char *to;  /* where it leads, as the caller wrote it; NULL: there is none */
        pid_t pid;
        int said;  /* reads its stderr, never waits */
} Tunnel;

#define TUNNEL_NULL ((Tunnel){ .to = NULL, .pid = -1, .said = -1 })

/*
 * ret_fd: the socket, close-on-exec. A SIGINT from the terminal, which asks the caller for its last words, does not reach the
 * child. -errno; that of execvp(3) too.
 */
int tunnel_open(Tunnel *t, const char *to, char *const *argv, int *ret_fd);
/* What it has said on stderr, in one line without control characters, malloc'ed; "" for nothing; NULL: no memory. */
char *tunnel_said(const Tunnel *t);
/*
 * Waits for its end, which has begun where it has closed the socket; else it is told to. Its exit status, 128 and the number of its
 * signal, or -1 if the caller's own handler of SIGCHLD was quicker.
 */
int tunnel_wait(Tunnel *t, bool has_begun);
/* Takes TUNNEL_NULL. */
void tunnel_close(Tunnel *t);
