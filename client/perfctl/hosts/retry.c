#include "client/perfctl/hosts/retry.h"

#include <stddef.h>
#include <string.h>

uint64_t host_retry_next(HostRetry *r, uint64_t chance) {
        uint64_t half;

        if (r->wait == 0)
                r->wait = HOST_RETRY_FIRST;
        else
                r->wait = r->wait < HOST_RETRY_MAX / 2 ? 2 * r->wait : HOST_RETRY_MAX;
        half = r->wait / 2;
        return half + chance % (half + 1);
}

void host_retry_lasted(HostRetry *r, uint64_t lasted) {
        if (lasted > HOST_RETRY_MAX)
                r->wait = 0;
}

/*
 * What a host that is to be reached has to change, or its user. "no-permission" is not among them: a socket of a perfd that is being
 * started is nobody's for a moment. ssh(1) has one status for all that it cannot do: its words tell.
 */
static bool is_lasting(const perfd_error *e) {
        static const char *const reasons[] = { "no-perfctl", "certificate-refused", "wrong-name", "expired",
                                               "not-yet-valid", "unknown-ca", "bad-certificate", "tls-version", "no-protocol",
                                               "not-tls" };
        static const char *const words[] = { "Permission denied", "Host key verification failed" };

        for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
                if (strcmp(e->reason, reasons[i]) == 0)
                        return true;
        for (size_t i = 0; i < sizeof(words) / sizeof(*words) && strcmp(e->reason, "ssh") == 0; i++)
                if (strstr(e->message, words[i]))
                        return true;
        return false;
}

bool host_error_may_pass(const perfd_error *e) {
        switch (e->code) {
        case PERFD_E_UNREACHABLE:
        case PERFD_E_CLOSED:
                return !is_lasting(e);
        case PERFD_E_TIMEOUT:
                return true;
        case PERFD_E_REFUSED: /* a limit or a quota; what perfd or its relay cannot do now, as while they stop; the relay's new rules */
                return e->refusal == PERFD_REFUSED_EXHAUSTED || e->refusal == PERFD_REFUSED_INTERNAL ||
                       strcmp(e->reason, "rights-changed") == 0;
        default:
                return e->code < 0;
        }
}
