/*
 * The sockets of all connections as one source of sd-event(3), which for each source that it calls looks at all that are ready: a packet
 * for a thousand readers would cost a million looks. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#define SOCKETS_PER_TURN 32 /* after so many it is others' turn: signals, timers, whoever connects */

/* A socket, and who is called when it is ready: at most once in a turn. It stays where it is while it is watched. */
typedef struct WatchedSocket {
        int fd;
        void (*ready)(void *userdata, uint32_t revents);
        void *userdata;
        uint32_t events; /* that are waited for, epoll_ctl(2) */
        bool is_watched;
} WatchedSocket;

typedef struct SocketSet {
        int fd; /* of epoll(7); -1: not open */
        sd_event_source *source;
        struct epoll_event ready[SOCKETS_PER_TURN]; /* in this turn */
        int n_ready;
} SocketSet;

#define SOCKET_SET_NULL ((SocketSet){ .fd = -1 })

/* -errno */
int socket_set_open(SocketSet *set, sd_event *event);
/* Also one that is not open. Nothing is watched any more. */
void socket_set_close(SocketSet *set);

/* From now on `events`, and errors and hang-ups, which are told even to who waits for nothing. -errno of epoll_ctl(2) */
int socket_set_watch(SocketSet *set, WatchedSocket *s, uint32_t events);
/* Nothing at all, also of what is ready already. Before its fd is closed. */
void socket_set_forget(SocketSet *set, WatchedSocket *s);
