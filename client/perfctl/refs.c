/* remove, enable and disable are one request with three names. */
#include "client/perfctl/refs.h"

#include "client/perfctl/json.h"
#include "client/perfctl/text.h"

static void print_ref(Perfctl *p, const perfd_ref_row *ref) {
        Json j = json_of(&p->out);

        if (!p->json) {
                text_put(&p->out, ref->name, strlen(ref->name));
                if (p->human)
                        output_print(&p->out, "  (id %u)\n", ref->id);
                else
                        output_print(&p->out, "\t%u\n", ref->id);
                return;
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "name", ref->name);
        JSON_NUMBER(&j, "id", ref->id);
        json_end(&j, '}');
        json_end_line(&j);
}

void refs_print(Perfctl *p, const perfd_result *result) {
        const perfd_ref_row *ref;

        for (size_t i = 0; (ref = perfd_result_ref(result, i)); i++)
                print_ref(p, ref);
}

int refs_change(Perfctl *p, RefsChange change) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (change(p->client, (const char *const *)p->arguments, p->n_arguments, &result) != 0)
                return perfctl_fail_client(p, NULL);
        refs_print(p, result);
        return PERFCTL_OK;
}
