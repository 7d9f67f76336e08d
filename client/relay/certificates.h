/* For a trial: a CA, a certificate for the relay and one for a client, and a relay.yaml that uses them. */
#pragma once

/*
 * Makes `directory`, and those that it is to be in, unless they are there, and in it ca.crt ca.key server.crt server.key client.crt
 * client.key relay.yaml. Overwrites nothing. `perfd`: the directory of perfd's sockets; NULL: that of $PERFD_SOCKET, else /run/perfd.
 * The exit status: what is wrong has been said.
 */
int certificates_make(const char *directory, const char *server, const char *client, const char *perfd);
