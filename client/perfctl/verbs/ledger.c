/* Where every sample went: the sums, and whether they are right. */
#include <unistd.h>

#include "client/perfctl/ledger/rows.h"
#include "client/perfctl/events/refs.h"
#include "client/perfctl/base/terminal.h"

static const char *explain_unwritten(const perfd_result *result) {
        const perfd_event_ledger *row;
        const char *text = NULL;

        for (size_t i = 0; !text && (row = perfd_result_event_ledger(result, i)); i++)
                text = ledger_explain_unwritten(row->lost, row->n_lost);
        return text;
}

static int ledger_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const char *unwritten;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        r = refs_ask(p, perfd_ledger_of, &result);
        if (r != 0)
                return r;
        if (p->json)
                ledger_print_json(&p->out, result);
        else
                ledger_print_tables(&p->out, p->human, p->human ? terminal_width(STDOUT_FILENO) : 0, result);
        if (p->human && !p->json && perfd_result_is_balanced(result))
                output_print(&p->out, "\nall rows balance%s\n",
                             perfd_result_is_loss_exact(result) ? "" : "; the kernel's own losses are a lower bound");
        output_flush(&p->out);
        unwritten = p->json ? NULL : explain_unwritten(result);
        if (unwritten)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", unwritten);
        return ledger_judge(p, result);
}

const Verb verb_ledger = {
        .name = "ledger",
        .arguments = "[EVENT...]",
        .help = "account for every sample: delivered, filtered or lost, and why",
        .max_arguments = VERB_ANY_NUMBER,
        .words = WORDS_SELECTED,
        .hosts = HOSTS_EACH,
        .run = ledger_run,
};
