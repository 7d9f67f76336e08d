/* For the library: what all requests need of the caller's arguments. */
#pragma once

#include "client/connection/client.h"

/*
 * A structure of the caller, which begins with its size, into ours: members that his header did not know yet are zero.
 * PERFD_E_INVALID if he sets some that we do not know.
 */
int caller_struct_copy(void *to, size_t size, const void *from);
int client_fail_size(perfd_client *c, const char *what);

/* Sends it and takes the rows of its answer. ret_result may be NULL. */
int client_ask(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__Response__BodyCase expected,
               perfd_result **ret_result);
/* The same of a request without anything in it. */
int client_ask_empty(perfd_client *c, Perfd__V1__Request__BodyCase body, Perfd__V1__Response__BodyCase expected,
                     perfd_result **ret_result);
