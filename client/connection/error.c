/*
 * The last error of a client. Its texts are copies, because what the daemon said goes away with its message; without
 * memory for them a text is left out, never the code.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/connection/client.h"

static void error_set(perfd_client *c, perfd_error error, const char *reason, char *message) {
        char *reason_copy = strdup(reason);

        client_error_deinit(c);
        c->error_reason = reason_copy;
        c->error_message = message;
        c->error = error;
        c->error.reason = reason_copy ? reason_copy : "";
        c->error.message = message ? message : "out of memory";
}

int client_fail(perfd_client *c, int code, const char *reason, const char *format, ...) {
        char *message;
        va_list ap;

        va_start(ap, format);
        if (vasprintf(&message, format, ap) < 0)
                message = NULL;
        va_end(ap);
        error_set(c, (perfd_error){ .code = code }, reason, message);
        return code;
}

int client_fail_memory(perfd_client *c) {
        return client_fail(c, -ENOMEM, "no-memory", "out of memory");
}

int client_fail_protocol(perfd_client *c, const char *what) {
        c->state = CLIENT_BROKEN;
        if (c->fd < 0) /* of bytes that no daemon has sent to this client */
                return client_fail(c, PERFD_E_PROTOCOL, "protocol",
                                   "it has what the protocol does not allow: %s; is it damaged, or of a newer perfd?", what);
        return client_fail(c, PERFD_E_PROTOCOL, "protocol",
                           "the daemon sent what the protocol does not allow: %s; are both of the same version?", what);
}

int client_fail_refused(perfd_client *c, const Perfd__V1__Response *response) {
        const char *message = *response->message ? response->message : "refused without a reason";

        error_set(c,
                  (perfd_error){ .code = PERFD_E_REFUSED,
                                 .refusal = (perfd_refusal)response->status,
                                 .position = response->position },
                  response->reason, strdup(message));
        return PERFD_E_REFUSED;
}

void client_error_deinit(perfd_client *c) {
        free(c->error_reason);
        free(c->error_message);
        c->error_reason = c->error_message = NULL;
        c->error = (perfd_error){ .reason = "", .message = "" };
}
