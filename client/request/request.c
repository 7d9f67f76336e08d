/*
 * What all requests do: the caller's structures are read as far as both sides know them, and the rows of the answer are made. Messages
 * are built around the caller's own strings, which protobuf-c takes as `char *` although it only reads them.
 */
#include <errno.h>
#include <string.h>

#include "client/request/request.h"
#include "client/result/result.h"

int caller_struct_copy(void *to, size_t size, const void *from) {
        size_t given;

        memcpy(&given, from, sizeof(given));
        if (given < sizeof(given))
                return PERFD_E_INVALID;
        for (size_t i = size; i < given; i++)
                if (((const char *)from)[i] != 0) /* of a newer header: what it asks for is not known here */
                        return PERFD_E_INVALID;
        memset(to, 0, size);
        memcpy(to, from, given < size ? given : size);
        return 0;
}

int client_fail_size(perfd_client *c, const char *what) {
        return client_fail(c, PERFD_E_INVALID, "bad-argument",
                           "%s: its size is not set by the PERFD_*_INIT macro, or it uses what this library lacks", what);
}

int client_ask(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__Response__BodyCase expected,
               perfd_result **ret_result) {
        Perfd__V1__ServerMessage *message;
        perfd_result *result;
        int r;

        r = client_call(c, request, &message);
        if (r != 0)
                return r;
        if (message->response->body_case != expected) {
                perfd__v1__server_message__free_unpacked(message, NULL);
                return client_fail_protocol(c, "an answer to another kind of request");
        }
        r = result_new(message, &result);
        if (r == -ENOMEM)
                return client_fail_memory(c);
        if (r != 0)
                return client_fail_protocol(c, "a field of a kind that does not exist");
        if (ret_result)
                *ret_result = result;
        else
                perfd_result_free(result);
        return 0;
}

int client_ask_empty(perfd_client *c, Perfd__V1__Request__BodyCase body, Perfd__V1__Response__BodyCase expected,
                            perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

        request.body_case = body;
        request.status = &empty; /* all members of the union are such pointers */
        return client_ask(c, &request, expected, ret_result);
}
