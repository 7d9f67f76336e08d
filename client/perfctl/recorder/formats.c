#include "client/perfctl/recorder/formats.h"

#include <stdlib.h>
#include <string.h>

#define LOT ((size_t)64)  /* ids that one request may have */
#define PATIENCE_MS 10000 /* the stream waits meanwhile */

void formats_deinit(Formats *f) {
        for (size_t i = 0; i < f->n; i++)
                perfd_result_free(f->results[i]);
        free(f->results);
        if (f->p.client)
                perfd_client_free(f->p.client);
        *f = (Formats){ .n = 0 };
}

const perfd_event_format *formats_find(const Formats *f, uint32_t id) {
        const perfd_event_format *row;

        for (size_t i = 0; i < f->n; i++)
                for (size_t k = 0; (row = perfd_result_event_format(f->results[i], k)); k++)
                        if (row->id == id)
                                return row;
        return NULL;
}

const perfd_format_host *formats_host(const Formats *f) {
        const perfd_format_host *host = NULL;

        for (size_t i = 0; i < f->n && !(host && host->header_page.length > 0); i++)
                host = perfd_result_format_host(f->results[i]);
        return host ? host : f->n > 0 ? perfd_result_format_host(f->results[0]) : NULL;
}

/* A refusal is of one of them, which is asked for alone in the end. */
static int ask(Formats *f, const Perfctl *p, const uint32_t *ids, size_t n) {
        perfd_result *result = NULL;
        const int r = perfd_formats(p->client, ids, n, &result);
        int code;

        if (r == PERFD_E_REFUSED && strcmp(perfd_client_error(p->client)->reason, "unknown-event") == 0) {
                if (n == 1)
                        return 0;
                code = ask(f, p, ids, n / 2);
                return code == 0 ? ask(f, p, ids + n / 2, n - n / 2) : code;
        }
        if (r == PERFD_E_REFUSED && n > 1 && strcmp(perfd_client_error(p->client)->reason, "too-long") == 0) {
                code = ask(f, p, ids, n / 2);
                return code == 0 ? ask(f, p, ids + n / 2, n - n / 2) : code;
        }
        if (r != 0)
                return perfctl_fail_client(p, NULL);
        f->results = must_have(reallocarray(f->results, f->n + 1, sizeof(*f->results)));
        f->results[f->n++] = result;
        return 0;
}

int formats_ask(Formats *f, const Perfctl *p, const uint32_t *ids, size_t n) {
        uint32_t lot[LOT];
        size_t n_lot = 0;
        int code = 0;

        for (size_t i = 0; i < n && code == 0; i++) {
                if (!formats_find(f, ids[i]))
                        lot[n_lot++] = ids[i];
                if (n_lot == LOT || (n_lot > 0 && i + 1 == n)) {
                        code = ask(f, p, lot, n_lot);
                        n_lot = 0;
                }
        }
        return code;
}

int formats_ask_late(Formats *f, const Perfctl *p, uint32_t id) {
        if (!f->p.client) {
                int code;

                f->p = *p;
                f->p.client = NULL;
                code = perfctl_connect(&f->p);
                if (code != 0)
                        return code;
                perfd_client_set_timeout(f->p.client, PATIENCE_MS);
        }
        return formats_ask(f, &f->p, &id, 1);
}
