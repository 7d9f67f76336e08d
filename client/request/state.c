/* Requests that only ask: what the daemon does, what it has counted, and what this host offers. */
#include "client/connection/client.h"
#include "client/request/request.h"
#include "client/wire/caller-string.h"

int perfd_status(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_STATUS, PERFD__V1__RESPONSE__BODY_DAEMON, ret_result);
}

int perfd_ledger_of(perfd_client *c, const char *const *events, size_t n_events, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;

        ledger.events = (char **)events; /* the library only reads them */
        ledger.n_events = n_events;
        request.body_case = PERFD__V1__REQUEST__BODY_LEDGER;
        request.ledger = &ledger;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_LEDGER, ret_result);
}

int perfd_ledger(perfd_client *c, perfd_result **ret_result) {
        return perfd_ledger_of(c, NULL, 0, ret_result);
}

int perfd_doctor(perfd_client *c, perfd_result **ret_result) {
        return client_ask_empty(c, PERFD__V1__REQUEST__BODY_DOCTOR, PERFD__V1__RESPONSE__BODY_DOCTOR, ret_result);
}

int perfd_kernel_names(perfd_client *c, const uint64_t *addresses, size_t n_addresses, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__KernelNamesRequest names = PERFD__V1__KERNEL_NAMES_REQUEST__INIT;

        names.addresses = (uint64_t *)addresses; /* the library only reads them */
        names.n_addresses = n_addresses;
        request.body_case = PERFD__V1__REQUEST__BODY_KERNEL_NAMES;
        request.kernel_names = &names;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_KERNEL_NAMES, ret_result);
}

int perfd_formats(perfd_client *c, const uint32_t *ids, size_t n_ids, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__EventFormatsRequest formats = PERFD__V1__EVENT_FORMATS_REQUEST__INIT;

        formats.ids = (uint32_t *)ids; /* the library only reads them */
        formats.n_ids = n_ids;
        request.body_case = PERFD__V1__REQUEST__BODY_EVENT_FORMATS;
        request.event_formats = &formats;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_EVENT_FORMATS, ret_result);
}

static int ask_list(perfd_client *c, const char *glob, bool fields, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;

        list.glob = wire_string(glob);
        list.fields = fields;
        request.body_case = PERFD__V1__REQUEST__BODY_LIST;
        request.list = &list;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_LIST, ret_result);
}

int perfd_list(perfd_client *c, const char *glob, perfd_result **ret_result) {
        return ask_list(c, glob, false, ret_result);
}

int perfd_list_with_fields(perfd_client *c, const char *glob, perfd_result **ret_result) {
        return ask_list(c, glob, true, ret_result);
}

int perfd_available(perfd_client *c, const char *glob, bool fields, perfd_result **ret_result) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__AvailableRequest available = PERFD__V1__AVAILABLE_REQUEST__INIT;

        available.glob = wire_string(glob);
        available.fields = fields;
        request.body_case = PERFD__V1__REQUEST__BODY_AVAILABLE;
        request.available = &available;
        return client_ask(c, &request, PERFD__V1__RESPONSE__BODY_AVAILABLE, ret_result);
}
