/*
 * Unix sockets of peers that perfd does not trust. A peer may send open files with its bytes (SCM_RIGHTS, unix(7)), and whoever
 * closes the last reference of a file waits for its end, which the peer can make last: an epoll instance with a million watches,
 * a TCP socket that lingers for an hour. From Linux 6.16 on a socket can refuse files (SO_PASSRIGHTS). Before, bytes are looked
 * at first (MSG_PEEK), a socket on which files have come is not read any more, and one that has anything unread is closed by a
 * thread that nobody waits for. That thread exists only where a socket could not refuse files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PEER_SOCKETS_MOST 256 /* waiting to be closed; a listener that has no trust in who connects accepts nobody meanwhile */

/*
 * Main, for each socket that listens, before anybody is accepted on it: files are refused, or else the thread is there. Negative:
 * the thread cannot be started.
 */
int peer_socket_refuse_files(int listening_fd);
/*
 * Any thread; does not block. As recv(2): bytes, 0 at the end, -1 with errno; EBADMSG: files have come, and the socket is to be
 * closed.
 */
ssize_t peer_socket_receive(int fd, void *to, size_t size);
/* Any thread. The peer finds the end at once. Nothing happens for -1. Returns -1. */
int peer_socket_close(int fd);
static inline void peer_socket_closep(const int *fd) {
        (void)peer_socket_close(*fd);
}

/* Any thread: so many sockets wait to be closed that nobody should be accepted. */
bool peer_socket_is_behind(void);
/* Main, at the end. What is not closed within a second is left to the end of the process. */
void peer_socket_stop(void);
