/*
 * Unix sockets of untrusted peers. A peer can send open files with its bytes (SCM_RIGHTS, unix(7)), and the thread that closes the
 * last reference of a file waits for its release, which the peer can prolong: an epoll instance with a million watches, a TCP socket
 * that lingers for an hour. Since Linux 6.16 a socket can refuse files (SO_PASSRIGHTS). Before, bytes are peeked at first (MSG_PEEK),
 * a socket that has received files is no longer read, and a socket with unread data is closed by a separate thread, for which no
 * other thread waits. This thread exists only where sockets cannot refuse files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PEER_SOCKETS_MOST 256 /* waiting to be closed; a listener that has no trust in who connects accepts nobody meanwhile */

/*
 * Main, for each listening socket, before the first accept(2): makes it refuse files, or starts the thread. Negative: the thread
 * cannot be started.
 */
int peer_socket_refuse_files(int listening_fd);
/*
 * Any thread; does not block. Like recv(2): bytes, 0 at the end, -1 with errno. EBADMSG: files were received; close the socket.
 */
ssize_t peer_socket_receive(int fd, void *to, size_t size);
/* Any thread. The peer sees the end immediately. Ignores -1. Returns -1. */
int peer_socket_close(int fd);
static inline void peer_socket_closep(const int *fd) {
        (void)peer_socket_close(*fd);
}

/* Any thread: too many sockets wait to be closed to accept another one. */
bool peer_socket_is_behind(void);
/* Main, at the end. Sockets that are not closed within a second are left to the exit of the process. */
void peer_socket_stop(void);
