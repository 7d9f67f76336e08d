/*
 * libnats 3.4 waits without an end for a server that stands still in the middle of TLS's handshake, and asks again and again for one
 * that does before its first PONG. Such a wait ends with its socket.
 */
#pragma once

/* Ends all TCP connections of this process to this port of whatever host. The thread that has them still closes them. */
void nats_sockets_shut(unsigned port);
