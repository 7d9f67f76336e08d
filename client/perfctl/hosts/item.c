#include "client/perfctl/hosts/item.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void host_item_begin(Perfctl *p, uint64_t wall, uint64_t error) {
        output_print(&p->out, "%c%" PRIu64 " %" PRIu64 "\n", ITEM_BEGIN, wall, error);
}

void host_item_end(Perfctl *p) {
        output_print(&p->out, "%c\n", ITEM_END);
}

void host_note(Perfctl *p, const char *word, const char *format, ...) {
        char *text;
        va_list ap;

        if (!p->is_of_several)
                return;
        va_start(ap, format);
        must_have(vasprintf(&text, format, ap) < 0 ? NULL : text);
        va_end(ap);
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ')
                        *c = ' ';
        output_print(&p->out, "%c%s %s\n", ITEM_NOTE, word, text);
        free(text);
}

void host_note_end(Perfctl *p, const perfd_end *end) {
        char *losses;
        size_t size;
        FILE *f = must_have(open_memstream(&losses, &size));

        for (size_t i = 0; i < end->n_lost; i++)
                fprintf(f, " %s %" PRIu64, end->lost[i].reason, end->lost[i].count);
        must_have(fclose(f) == 0 ? losses : NULL);
        host_note(p, NOTE_END, "%s %d %d%s", end->reason, perfd_result_is_loss_exact(end->ledger), perfd_result_is_balanced(end->ledger),
                  losses);
        free(losses);
}
